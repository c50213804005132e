drop table if exists t, u;
create table t(id serial primary key, a int, b text, c float8, d numeric, e timestamptz);
create table u(id int references t(id), j jsonb, x xml, arr int[]);
insert into t(a, b, c, d, e) select i % 17, 'row ' || i, sqrt(i), i * 1.01, now()
    from generate_series(1, 500) i;
insert into u select i, jsonb_build_object('n', i, 'l', array[i, 2]), null, array[i, i + 1]
    from generate_series(1, 200) i;
create index on t(b); create index on u using gin(j);
analyze t;
select count(*), sum(c), avg(d), max(b), stddev(c) from t where a between 3 and 9;
select a, count(*), string_agg(b, ',' order by b) from t group by a having count(*) > 5
    order by 2 desc, 1;
select t.a, j->>'n' from t join u using (id) where j @> '{"n": 7}' or arr[1] = 5;
select rank() over (partition by a order by c), lag(b) over (order by id) from t limit 5;
with recursive r(n) as (select 1 union all select n + 1 from r where n < 50)
    select sum(n) from r;
select regexp_replace(b, '(row) ([0-9]+)', '\2 \1') from t where b ~ '9$' and b like 'row%';
select to_char(e, 'YYYY'), date_trunc('hour', e) - e < interval '1 day' from t limit 3;
select md5(b), upper(b), substr(b, 2), encode(b::bytea, 'base64'), format('%s', b) from t limit 9;
explain select * from t where id = 3;
begin; update t set c = c + 1 where a = 4; savepoint s; delete from u where id < 9;
rollback to s; commit;
begin; declare cur cursor for select * from t order by c; fetch 3 from cur; close cur; end;
prepare p(int) as select b from t where id = @N@; execute p(4); deallocate p;
do $$ declare i int; begin for i in 1..20 loop perform i * 2; end loop;
    begin perform 1 / 0; exception when others then null; end; end $$;
select 1 / 0; select * from none;
copy t to stdout; vacuum t;
select count(*) from pg_class c join pg_attribute a on a.attrelid = c.oid;
select 'worked @N@';
