-- What the threads of each rank did with its time, of ranks without a GPU: computing, communicating, loading data (the view ranks).
with begun as (
    select job, process, min(start_ns) as first_step_ns
    from steps
    where part <> 'first'
    group by job, process
),
work as (
    select
        ranges.job, ranges.process, thread, start_ns, start_ns + duration_ns as end_ns,
        case when name like 'c10d::%' or name like 'gloo:%' or name like 'nccl:%' or name like 'ucc:%' or name like 'mpi:%'
                or name like 'record_param_comms%' or name like 'FSDP::%' then 3
            when name like 'enumerate(DataLoader)%' then 2
            when is_user = 0 then 1 else 0 end as does,
        first_step_ns
    from ranges
    left join begun on begun.job = ranges.job and begun.process = ranges.process
),
changes as (
    select job, process, thread, does, start_ns as time_ns, 1 as change
    from work
    union all
    select job, process, thread, does, end_ns as time_ns, -1 as change
    from work
),
open_ranges as (
    select
        job, process, thread, time_ns,
        sum(sum(case when does = 1 then change else 0 end)) over by_time as computes,
        sum(sum(case when does = 2 then change else 0 end)) over by_time as loads,
        sum(sum(case when does = 3 then change else 0 end)) over by_time as communicates
    from changes
    group by job, process, thread, time_ns
    window by_time as (partition by job, process, thread order by time_ns rows between unbounded preceding and current row)
),
threads_do as (
    select
        job, process, thread, time_ns,
        case when communicates > 0 then 3 when loads > 0 then 2 when computes > 0 then 1 else 0 end as does
    from open_ranges
),
turns as (
    select
        job, process, time_ns, does,
        lag(does, 1, 0) over (partition by job, process, thread order by time_ns) as before
    from threads_do
),
processes_do as (
    select
        job, process, time_ns,
        lead(time_ns) over (partition by job, process order by time_ns) as next_ns,
        sum(sum(case when does = 1 then 1 else 0 end - case when before = 1 then 1 else 0 end)) over by_time as compute,
        sum(sum(case when does = 2 then 1 else 0 end - case when before = 2 then 1 else 0 end)) over by_time as loading,
        sum(sum(case when does = 3 then 1 else 0 end - case when before = 3 then 1 else 0 end)) over by_time as communication
    from turns
    group by job, process, time_ns
    window by_time as (partition by job, process order by time_ns rows between unbounded preceding and current row)
),
parts as (
    select
        processes_do.job, processes_do.process, compute, loading, communication, next_ns,
        greatest(time_ns, coalesce(first_step_ns, time_ns)) as from_ns,
        coalesce(first_step_ns, time_ns) as first_ns,
        greatest(next_ns - greatest(time_ns, coalesce(first_step_ns, time_ns)), 0) as passed_ns
    from processes_do
    left join begun on begun.job = processes_do.job and begun.process = processes_do.process
)
select
    parts.job, processes.rank, parts.process,
    max(next_ns) - min(first_ns) as span_ns,
    sum(case when compute > 0 then passed_ns else 0 end) as compute_ns,
    sum(case when communication > 0 then passed_ns else 0 end) as communication_ns,
    sum(case when communication > 0 and compute = 0 then passed_ns else 0 end) as exposed_communication_ns,
    sum(case when loading > 0 then passed_ns else 0 end) as data_loading_ns,
    max(next_ns) - min(first_ns) - sum(case when compute > 0 or communication > 0 or loading > 0 then passed_ns else 0 end) as idle_ns
from parts
join processes on processes.job = parts.job and processes.id = parts.process
where processes.rank is not null
group by parts.job, processes.rank, parts.process
order by parts.job, processes.rank, parts.process
