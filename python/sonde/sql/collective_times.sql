-- Collectives by group, kind and size: waiting apart from transfer, GB/s, who came last how often (the view collectives).
with members as (
    select
        *,
        row_number() over (partition by job, collective order by start_ns desc, rank) as from_last
    from collectives
),
single as (
    select
        job, collective, group_name, group_ranks,
        min_by(kind, rank) as kind,
        max(size_bytes) as size_bytes,
        count(*) as ranks,
        min(is_complete) as is_complete,
        count(distinct case when kind in ('send', 'recv') then 'pair' else kind end) as kinds,
        count(distinct case when kind in ('all_to_all', 'gather', 'scatter') then -1 else size_bytes end) as sizes,
        cast((sum(duration_ns) - sum(duration_ns) % count(*)) / count(*) as bigint) as duration_ns,
        cast((sum(wait_ns) - sum(wait_ns) % count(*)) / count(*) as bigint) as wait_ns,
        max(start_ns + duration_ns) - max(start_ns) as transfer_ns,
        max(case when from_last = 1 then rank end) as last_rank
    from members
    group by job, collective, group_name, group_ranks
),
lasts as (
    select
        job, group_name, group_ranks, kind, size_bytes, last_rank,
        count(*) as last_count,
        row_number() over (
            partition by job, group_name, group_ranks, kind, size_bytes order by count(*) desc, last_rank
        ) as place
    from single
    where is_complete = 1 and wait_ns is not null and kinds = 1
    group by job, group_name, group_ranks, kind, size_bytes, last_rank
),
sums as (
    select
        job, group_name, group_ranks, kind, size_bytes,
        max(ranks) as ranks,
        count(*) as calls,
        sum(case when is_complete = 1 then duration_ns else 0 end) as duration_ns,
        sum(case when is_complete = 1 and kinds = 1 then wait_ns end) as wait_ns,
        sum(case when is_complete = 1 and kinds = 1 and wait_ns is not null then transfer_ns end) as transfer_ns,
        sum(case when is_complete = 1 and kinds = 1 and wait_ns is not null then 1 else 0 end) as whole,
        sum(case when is_complete = 1 then 0 else 1 end) as unfinished,
        sum(case when kinds > 1 or sizes > 1 then 1 else 0 end) as mismatched
    from single
    group by job, group_name, group_ranks, kind, size_bytes
)
select
    sums.job, sums.kind, sums.group_name, sums.group_ranks, sums.size_bytes, calls, duration_ns, wait_ns, transfer_ns,
    case when transfer_ns > 0 and sums.size_bytes > 0
        then cast(sums.size_bytes as double) * whole / transfer_ns end as algorithm_gbps,
    case when transfer_ns > 0 and sums.size_bytes > 0
        then cast(sums.size_bytes as double) * whole / transfer_ns * case
            when sums.kind = 'all_reduce' then 2.0 * (ranks - 1) / ranks
            when sums.kind in ('all_gather', 'reduce_scatter', 'all_to_all', 'gather', 'scatter') then 1.0 * (ranks - 1) / ranks
            else 1.0 end end as bus_gbps,
    last_rank, last_count, unfinished, mismatched
from sums
left join lasts on lasts.place = 1 and lasts.job = sums.job and lasts.kind = sums.kind and lasts.size_bytes = sums.size_bytes
    and coalesce(lasts.group_name, '') = coalesce(sums.group_name, '')
    and coalesce(lasts.group_ranks, '') = coalesce(sums.group_ranks, '')
order by duration_ns desc, sums.job, sums.group_name, sums.kind, sums.size_bytes
