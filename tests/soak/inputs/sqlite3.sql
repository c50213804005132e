-- What the shell of tests/soak/sources.sh runs.
PRAGMA cache_size = 50;
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE, price REAL, kind INT, note BLOB,
	CHECK (price >= 0));
CREATE TABLE sale(day TEXT, item INT REFERENCES item(id), number INT DEFAULT 1, UNIQUE (day, item));
CREATE INDEX by_kind ON item(kind, name DESC);
CREATE INDEX dear ON item(price) WHERE price > 50;
CREATE TABLE log(what TEXT);
CREATE TRIGGER sold AFTER INSERT ON sale WHEN new.number > 3 BEGIN
	INSERT INTO log VALUES ('sold ' || new.item); END;
CREATE VIEW dear_items AS SELECT name, price FROM item WHERE price > 40;
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
INSERT INTO item SELECT i, 'item ' || (i * 7919 % 1009), i * 37 % 101 + 0.25, i % 9,
	CASE i % 4 WHEN 0 THEN x'00ff' WHEN 1 THEN NULL WHEN 2 THEN hex(i) ELSE i END FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
INSERT OR REPLACE INTO sale SELECT date('2020-01-01', '+' || (i % 50) || ' days'), i * 31 % 400 + 1,
	i % 5 FROM n;
COMMIT;
SELECT kind, count(*), avg(price), min(name), max(note), total(price), group_concat(id % 10)
	FROM item GROUP BY kind HAVING count(*) > 3 ORDER BY 3 DESC LIMIT 5;
SELECT i.name,
	sum(s.number) FROM item i JOIN sale s ON s.item = i.id WHERE i.price BETWEEN 10 AND 60
	GROUP BY i.name ORDER BY 2, 1 LIMIT 3 OFFSET 2;
SELECT count(*) FROM item a LEFT JOIN sale s ON s.item = a.id AND s.number = 4 WHERE s.day IS NULL;
SELECT name FROM item WHERE kind IN (1,
	3) OR name LIKE '%77%' OR name GLOB 'item 9*' ORDER BY name LIMIT 4;
SELECT DISTINCT kind FROM item WHERE EXISTS (SELECT 1 FROM sale WHERE item = item.id) UNION
	SELECT 99 EXCEPT SELECT 3 INTERSECT SELECT 99 ORDER BY 1;
SELECT id, row_number() OVER w, rank() OVER w, lag(price, 2, 0) OVER w, sum(price) OVER
	(PARTITION BY kind ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING), ntile(4) OVER w
	FROM item WINDOW w AS (ORDER BY price, id) ORDER BY id LIMIT 4;
SELECT upper(name), substr(name, 2, 3), replace(name, 'i', 'I'), trim('  x '), round(price, 1),
	abs(-kind), instr(name, '7'), printf('%05d|%-6s|%.3e|%x', id, 'ab', price, id), quote(note),
	typeof(note), coalesce(note, 'none'), nullif(kind, 1), unicode('ä'), hex('abc'),
	length(name)
	FROM item WHERE id < 6;
SELECT strftime('%Y %j %W %H:%M', '2021-03-04 05:06:07'), julianday('2000-01-01'), time('12:00',
	'+90 minutes'),
	datetime(86400, 'unixepoch'), date('2024-01-31', '+1 month', 'weekday 1');
SELECT json_extract('{"a":[1,2,{"b":"c"}]}', '$.a[2].b'), json_array(1, 'x', NULL),
	json_type('[1]'),
	json_set('{"a":1}', '$.b', 2),
	(SELECT group_concat(key || value) FROM json_each('{"x":1,"y":2}'));
UPDATE item SET price = price * 2, name = lower(name) WHERE kind = 4;
DELETE FROM item WHERE id % 17 = 0;
SAVEPOINT one;
DELETE FROM sale;
ROLLBACK TO one;
RELEASE one;
INSERT INTO item(id, name, price) VALUES (5, 'twice', 1) ON CONFLICT (id) DO UPDATE SET price = 7;
INSERT INTO item(name, price) VALUES ('wrong', -1);
SELECT nothing FROM item;
SELEC 1;
ALTER TABLE log ADD COLUMN at INT DEFAULT 3;
ALTER TABLE log RENAME COLUMN what TO text;
SELECT count(*), sum(at) FROM log;
CREATE VIRTUAL TABLE doc USING fts5(body);
INSERT INTO doc SELECT name || ' of kind ' || kind FROM item LIMIT 60;
SELECT count(*) FROM doc WHERE doc MATCH 'kind AND item NOT 77*';
CREATE VIRTUAL TABLE box USING rtree(id, x0, x1, y0, y1);
INSERT INTO box SELECT id, id, id + 5, price, price + 9 FROM item LIMIT 90;
SELECT count(*) FROM box WHERE x0 > 20 AND y1 < 60;
ANALYZE;
EXPLAIN QUERY PLAN SELECT * FROM item WHERE kind = 2 AND name > 'item 3';
REINDEX;
PRAGMA integrity_check;
VACUUM;
.mode csv
.headers on
SELECT * FROM dear_items LIMIT 3;
.mode json
SELECT id, name FROM item LIMIT 2;
.schema sale
.dump log
