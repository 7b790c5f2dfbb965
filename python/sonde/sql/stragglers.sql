-- The ranks that the others wait for 10 % of the run or more, why and where (the view stragglers, but for its test against chance).
with work as (
    select
        job, process, name, self_ns, start_ns,
        case when name like 'c10d::%' or name like 'gloo:%' or name like 'nccl:%' or name like 'ucc:%' or name like 'mpi:%'
                or name like 'record_param_comms%' or name like 'FSDP::%' then 3
            when name like 'enumerate(DataLoader)%' then 2
            when is_user = 0 then 1 else 0 end as does
    from ranges
),
activities as (
    select
        job, process,
        case when step is null then 0 else 1 end as in_steps,
        is_compute, is_communication, is_loading,
        sum(duration_ns) as duration_ns
    from activity
    group by job, process, case when step is null then 0 else 1 end, is_compute, is_communication, is_loading
),
-- Where a program has steps, what came before the first is start-up.
timed as (
    select
        *,
        max(in_steps) over (partition by job, process) as has_steps
    from activities
),
host_times as (
    select
        timed.job, timed.process, processes.rank,
        sum(duration_ns) as span_ns,
        sum(case when is_compute = 1 then duration_ns else 0 end) as compute_ns,
        sum(case when is_loading = 1 then duration_ns else 0 end) as loading_ns,
        sum(case when is_compute = 0 and is_communication = 0 and is_loading = 0 then duration_ns else 0 end) as idle_ns
    from timed
    join processes on processes.job = timed.job and processes.id = timed.process
    where processes.rank is not null and in_steps = has_steps
    group by timed.job, timed.process, processes.rank
),
gpu_busy as (
    select
        job, process, start_ns, start_ns + duration_ns as end_ns,
        case when kind = 'kernel' and name not like 'nccl%Kernel%' then 1 else 0 end as computes,
        max(start_ns + duration_ns) over (
            partition by job, process order by start_ns, duration_ns rows between unbounded preceding and 1 preceding
        ) as all_until_ns,
        max(start_ns + duration_ns) over (
            partition by job, process, case when kind = 'kernel' and name not like 'nccl%Kernel%' then 1 else 0 end
            order by start_ns, duration_ns rows between unbounded preceding and 1 preceding
        ) as same_until_ns
    from gpu_work
),
gpu_times as (
    select
        job, process,
        max(end_ns) - min(start_ns) as span_ns,
        sum(computes * greatest(end_ns - greatest(start_ns, coalesce(same_until_ns, start_ns)), 0)) as compute_ns,
        max(end_ns) - min(start_ns)
            - sum(greatest(end_ns - greatest(start_ns, coalesce(all_until_ns, start_ns)), 0)) as idle_ns
    from gpu_busy
    group by job, process
),
members as (
    select
        collectives.*,
        max(start_ns + duration_ns) over (partition by job, collective) as done_ns,
        count(*) over (partition by job, collective) as ranks,
        min(is_complete) over (partition by job, collective) as all_complete,
        min(kind) over (partition by job, collective) as least_kind,
        max(kind) over (partition by job, collective) as greatest_kind,
        row_number() over (partition by job, collective order by arrive_ns desc, rank) as from_last
    from collectives
),
single as (
    select
        job, collective, done_ns,
        max(case when from_last = 1 then process end) as process,
        max(case when from_last = 1 then arrive_ns end) as last_ns,
        max(case when from_last = 1 then start_ns end) as call_ns,
        max(case when from_last = 2 then arrive_ns end) as others_ns,
        greatest(max(case when from_last > 1 then arrive_ns - start_ns end), 0) as usual_ns
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
leaders as (
    select job, min(id) as process, count(*) as ranks
    from processes
    where rank is not null
    group by job
),
marks_of_steps as (
    select steps.job, steps.start_ns, count(*) over (partition by steps.job) as marks, min(steps.start_ns) over (partition by steps.job) as first_ns
    from steps
    join leaders on leaders.job = steps.job and leaders.process = steps.process
    where part <> 'first'
),
-- A block is a step of the first rank; without steps, a collective.
numbered as (
    select
        counted.job, counted.collective, counted.process,
        greatest(max(last_ns) - greatest(max(others_ns), coalesce(max(until_ns), max(others_ns))), 0) as late_ns,
        max(last_ns) - max(call_ns) - max(usual_ns) as own_ns,
        max(marks) as marks,
        case when max(marks) is null then row_number() over (partition by counted.job order by counted.collective)
            else sum(case when marks_of_steps.start_ns <= done_ns then 1 else 0 end) end as number
    from counted
    left join marks_of_steps on marks_of_steps.job = counted.job
    where done_ns >= coalesce(first_ns, done_ns)
    group by counted.job, counted.collective, counted.process
),
-- More than 512 of them are taken together, 2, 4, 8, .. each.
folded as (
    select
        *,
        power(2, ceil(log2(greatest(coalesce(marks, count(*) over (partition by job)), 512) / 512.0))) as fold
    from numbered
),
blocks as (
    select
        job, process,
        floor((number - 1) / fold) as block,
        sum(late_ns) as late_ns,
        sum(greatest(least(own_ns, late_ns), 0)) as late_work_ns
    from folded
    group by job, process, floor((number - 1) / fold)
),
late_blocks as (
    select
        *,
        case when late_ns > 0 and row_number() over (partition by job, block order by late_ns desc, process) = 1 then 1 else 0 end as is_new
    from blocks
),
caused as (
    select
        job, process,
        sum(late_ns) as caused_ns,
        sum(late_work_ns) as late_work_ns,
        sum(case when late_ns > 0 then 1 else 0 end) as own_blocks,
        sum(sum(is_new)) over (partition by job) as any_blocks
    from late_blocks
    group by job, process
),
ranks as (
    select
        host_times.job, host_times.process, host_times.rank, loading_ns,
        coalesce(gpu_times.span_ns, host_times.span_ns) as span_ns,
        coalesce(gpu_times.compute_ns, host_times.compute_ns) as compute_ns,
        coalesce(gpu_times.idle_ns, host_times.idle_ns) as idle_ns,
        coalesce(late_work_ns, 0) as late_work_ns,
        coalesce(caused_ns, 0) as caused_ns,
        own_blocks, any_blocks,
        max(coalesce(gpu_times.span_ns, host_times.span_ns)) over (partition by host_times.job) as longest_ns,
        count(*) over (partition by host_times.job) as ranks
    from host_times
    left join gpu_times on gpu_times.job = host_times.job and gpu_times.process = host_times.process
    left join caused on caused.job = host_times.job and caused.process = host_times.process
),
causes as (
    select 1 as place, 'compute' as cause
    union all
    select 2 as place, 'data loading' as cause
    union all
    select 3 as place, 'communication' as cause
    union all
    select 4 as place, 'host' as cause
),
spent_on as (
    select
        ranks.*, causes.place, causes.cause,
        case causes.place when 1 then compute_ns when 2 then loading_ns when 3 then late_work_ns else idle_ns end as ns
    from ranks
    cross join causes
),
placed as (
    select
        *,
        row_number() over (partition by job, place order by ns, process) as number,
        floor((ranks - 1) / 2) + 1 as middle
    from spent_on
),
-- The median of the others, of two the greater: in the order of all, one further for who comes before it.
compared as (
    select
        *,
        ns - case when number > middle then max(case when number = middle then ns end) over (partition by job, place)
            else max(case when number = middle + 1 then ns end) over (partition by job, place) end as more_ns
    from placed
),
chosen as (
    select
        *,
        row_number() over (partition by job, process order by more_ns desc, place) as choice
    from compared
),
spent_in as (
    select
        work.job, work.process, work.name,
        min(start_ns) as first_ns,
        sum(self_ns) as ns,
        max(leaders.ranks) as ranks,
        max(leaders.ranks) - count(*) over (partition by work.job, work.name) as without,
        row_number() over (partition by work.job, work.name order by sum(self_ns), work.process) as number
    from work
    join leaders on leaders.job = work.job
    where does in (1, 2)
    group by work.job, work.process, work.name
),
in_middle as (
    select
        *,
        floor((ranks - 1) / 2) + 1 - without as middle
    from spent_in
),
more_in as (
    select
        job, process, name, first_ns,
        ns - coalesce(case when number > middle then max(case when number = middle then ns end) over (partition by job, name)
            else max(case when number = middle + 1 then ns end) over (partition by job, name) end, 0) as more_ns
    from in_middle
),
places as (
    select
        job, process, name,
        row_number() over (partition by job, process order by more_ns desc, first_ns, name) as number
    from more_in
    where more_ns > 0
)
select
    chosen.job, chosen.rank, chosen.process, chosen.cause,
    chosen.caused_ns as caused_wait_ns,
    100 * cast(chosen.caused_ns as double) / chosen.span_ns as caused_percent,
    chosen.more_ns,
    case when 2 * chosen.own_blocks >= chosen.any_blocks then 'persistent' else 'occasional' end as how,
    case when chosen.place < 3 then places.name end as differs_in
from chosen
left join places on places.job = chosen.job and places.process = chosen.process and places.number = 1
where chosen.choice = 1 and chosen.caused_ns > 0 and chosen.caused_ns * 10 >= chosen.longest_ns
order by chosen.job, chosen.rank, chosen.process
