-- Operators and ranges by the time that they took themselves, over all processes.
select
    name,
    is_user,
    count(*) as calls,
    sum(self_ns) as self_total_ns,
    sum(duration_ns) as total_ns,
    cast(sum(duration_ns) as double) / count(*) as mean_ns,
    100 * cast(sum(self_ns) as double) / sum(sum(self_ns)) over () as self_percent
from ranges
group by name, is_user
order by self_total_ns desc, name, is_user
limit 50
