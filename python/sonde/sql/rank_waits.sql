-- Each rank in collectives: how long it waited for others, how often it came last, how long all others waited for it alone (the view ranks).
with begun as (
    select job, process, min(start_ns) as first_step_ns
    from steps
    where part <> 'first'
    group by job, process
),
members as (
    select
        collectives.*,
        max(start_ns + duration_ns) over (partition by collectives.job, collective) as done_ns,
        count(*) over (partition by collectives.job, collective) as ranks,
        min(is_complete) over (partition by collectives.job, collective) as all_complete,
        min(kind) over (partition by collectives.job, collective) as least_kind,
        max(kind) over (partition by collectives.job, collective) as greatest_kind,
        row_number() over (partition by collectives.job, collective order by arrive_ns desc, rank) as from_last
    from collectives
),
waits as (
    select
        members.job, members.process, rank,
        count(*) as collectives,
        sum(coalesce(wait_ns, 0)) as wait_ns
    from members
    left join begun on begun.job = members.job and begun.process = members.process
    where done_ns >= coalesce(first_step_ns, done_ns)
    group by members.job, members.process, rank
),
single as (
    select
        job, collective, done_ns,
        max(case when from_last = 1 then process end) as process,
        max(case when from_last = 1 then arrive_ns end) as last_ns,
        max(case when from_last = 2 then arrive_ns end) as others_ns
    from members
    where wait_ns is not null and all_complete = 1 and ranks > 1
        and (least_kind = greatest_kind or least_kind in ('send', 'recv') and greatest_kind in ('send', 'recv'))
    group by job, collective, done_ns
),
counted as (
    select
        *,
        max(case when last_ns > others_ns then last_ns end) over (
            partition by job order by collective rows between unbounded preceding and 1 preceding
        ) as until_ns
    from single
),
firsts as (
    select job, min(first_step_ns) as first_step_ns
    from begun
    group by job
),
caused as (
    select
        counted.job, counted.process,
        count(*) as last_count,
        sum(greatest(last_ns - greatest(others_ns, coalesce(until_ns, others_ns)), 0)) as caused_wait_ns
    from counted
    left join firsts on firsts.job = counted.job
    where done_ns >= coalesce(first_step_ns, done_ns)
    group by counted.job, counted.process
)
select
    waits.job, waits.rank, waits.process, collectives, wait_ns,
    coalesce(last_count, 0) as last_count,
    coalesce(caused_wait_ns, 0) as caused_wait_ns
from waits
left join caused on caused.job = waits.job and caused.process = waits.process
order by waits.job, waits.rank, waits.process
