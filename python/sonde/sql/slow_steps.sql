-- Steps that took at least 1.5 times as long as the median of their process, without what came after the last one.
with began as (
    select job, process, step, count(*) as ranges
    from ranges
    group by job, process, step
),
counted as (
    select steps.*, coalesce(began.ranges, 0) as ranges
    from steps
    left join began
        on began.job = steps.job and began.process = steps.process and began.step = steps.number
),
ordered as (
    select
        counted.*,
        lag(ranges) over (partition by job, process order by start_ns) as ranges_before,
        lead(number) over (partition by job, process order by start_ns) as number_after
    from counted
),
-- As in the summary: an optimizer that marks the end of each step marks one too many, in which nothing begins.
ran as (
    select *
    from ordered
    where number_after is not null or ranges > 0 or coalesce(ranges_before, 0) = 0
),
usual as (
    select job, process, median(duration_ns) as median_ns
    from ran
    group by job, process
)
select
    ran.job,
    ran.process,
    ran.number as step,
    ran.start_ns,
    ran.duration_ns,
    ran.duration_ns / usual.median_ns as times_the_median
from ran
join usual on usual.job = ran.job and usual.process = ran.process
where usual.median_ns > 0 and ran.duration_ns >= 1.5 * usual.median_ns
order by times_the_median desc, ran.job, ran.process, ran.number
