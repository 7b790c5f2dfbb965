-- The longest times in which a thread ran no operator between two of them, and the one that ended the gap.
with work as (
    select
        job, process, thread, name, start_ns,
        max(start_ns + duration_ns) over (
            partition by job, process, thread
            order by start_ns, duration_ns desc rows between unbounded preceding and 1 preceding
        ) as busy_until_ns
    from ranges
    where is_user = 0 and is_async = 0
)
select
    job, process, thread,
    busy_until_ns as gap_start_ns,
    start_ns - busy_until_ns as gap_ns,
    name as next_range
from work
where start_ns > busy_until_ns
order by gap_ns desc, job, process, thread, gap_start_ns
limit 50
