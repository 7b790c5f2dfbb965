-- Steps that took at least 1.5 times as long as the median of their process, without what came after the last one.
with counted as (
    select
        steps.job,
        steps.process,
        steps.number,
        steps.start_ns,
        steps.duration_ns,
        count(ranges.step) as ranges
    from steps
    left join ranges
        on ranges.job = steps.job and ranges.process = steps.process and ranges.step = steps.number
    group by steps.job, steps.process, steps.number, steps.start_ns, steps.duration_ns
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
