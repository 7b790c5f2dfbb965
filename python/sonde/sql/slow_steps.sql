-- Whole steps that took at least 1.5 times as long as the median of their process.
with whole as (
    select *
    from steps
    where part = 'whole'
),
usual as (
    select job, process, median(duration_ns) as median_ns
    from whole
    group by job, process
)
select
    whole.job,
    whole.process,
    whole.number as step,
    whole.start_ns,
    whole.duration_ns,
    whole.duration_ns / usual.median_ns as times_the_median
from whole
join usual on usual.job = whole.job and usual.process = whole.process
where usual.median_ns > 0 and whole.duration_ns >= 1.5 * usual.median_ns
order by times_the_median desc, whole.job, whole.process, whole.number
