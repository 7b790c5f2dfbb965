-- Steps that took at least 1.5 times as long as the median of their process; the last one lasts to the end of the recording.
with usual as (
    select job, process, median(duration_ns) as median_ns
    from steps
    group by job, process
)
select
    steps.job,
    steps.process,
    steps.number as step,
    steps.start_ns,
    steps.duration_ns,
    steps.duration_ns / usual.median_ns as times_the_median
from steps
join usual on usual.job = steps.job and usual.process = steps.process
where usual.median_ns > 0 and steps.duration_ns >= 1.5 * usual.median_ns
order by times_the_median desc, steps.job, steps.process, steps.number
