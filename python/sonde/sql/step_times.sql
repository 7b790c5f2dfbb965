-- Each step over all processes: how many took part, the fastest, the slowest and the difference.
select
    job,
    number as step,
    count(*) as processes,
    min(duration_ns) as least_ns,
    max(duration_ns) as greatest_ns,
    max(duration_ns) - min(duration_ns) as spread_ns
from steps
where part <> 'after'
group by job, number
order by job, step
