create database if not exists d; use d;
drop table if exists t, u, m;
create table t(id int auto_increment primary key, a int, b varchar(40), c double,
    d decimal(10, 2), key(b), key(a)) engine=innodb;
create table u(id int, j json, fulltext(j)) engine=aria;
create table m(x int) engine=memory;
insert into t(a, b, c, d) select seq % 17, concat('row ', seq), sqrt(seq), seq * 1.01
    from seq_1_to_400;
insert into u select seq, json_object('n', seq) from seq_1_to_100;
insert into m values (1), (2), (3);
select count(*), sum(c), avg(d), max(b), std(c) from t where a between 3 and 9;
select a, count(*), group_concat(b order by b) from t group by a having count(*) > 5;
select t.a, json_value(j, '$.n') from t join u using (id) where t.b like 'row 1%';
select rank() over (partition by a order by c), lag(b) over (order by id) from t limit 5;
with recursive r as (select 1 n union all select n + 1 from r where n < 50)
    select sum(n) from r;
select regexp_replace(b, 'row', 'x'), date_format(now(), '%Y'), md5(b), sha2(b, 256),
    hex(compress(b)) from t limit 9;
explain select * from t where id = 3;
begin; update t set c = c + 1 where a = 4; savepoint s; delete from u where id < 9;
rollback to s; commit;
alter table t add column e int default 4; analyze table t; check table t;
prepare p from 'select b from t where id = ?'; set @i = 4; execute p using @i;
show status; show variables like 'inno%'; show create table t; show engine innodb status;
select * from none; select convert('x' using utf16), cast('12' as decimal(4, 1));
select count(*) from information_schema.columns;
flush tables;
