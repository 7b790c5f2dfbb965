-- SPDX-License-Identifier: Apache-2.0
-- A table, an index, a join, and a function that runs for a while.
create table words as select i, md5(i::text) as word from generate_series(1, 20000) i;
create index on words (word);
select count(*), min(word) from words where word < '8';
select sum(length(a.word)) from words a join words b using (i);
select count(distinct substr(word, 1, 3)) from words;
