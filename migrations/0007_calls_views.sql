-- The view of calls once more, with the same columns: which container a call is about, and in which pod, is looked up in a
-- table that SQLite makes of all containers when a query first needs it, in place of reading a container's and a pod's
-- configuration for every call.

DROP VIEW calls;

CREATE VIEW calls AS
WITH made(id, name, pod_id, namespace, pod) AS MATERIALIZED (
  SELECT
    substr(n.name, 11),
    json_extract(k.body, '$.config.metadata.name'),
    json_extract(k.body, '$.podSandboxId'),
    (
      SELECT json_extract(p.body, '$.config.metadata.namespace') FROM records p
      WHERE typeof(p.stream) = 'integer' AND p.stream = (SELECT +id FROM names WHERE name = 'sandbox/' || json_extract(k.body, '$.podSandboxId'))
        AND p.type = (SELECT id FROM names WHERE name = 'sandbox.requested') LIMIT 1
    ),
    (
      SELECT json_extract(p.body, '$.config.metadata.name') FROM records p
      WHERE typeof(p.stream) = 'integer' AND p.stream = (SELECT +id FROM names WHERE name = 'sandbox/' || json_extract(k.body, '$.podSandboxId'))
        AND p.type = (SELECT id FROM names WHERE name = 'sandbox.requested') LIMIT 1
    )
  FROM names n
  JOIN records k ON k.seq = (SELECT min(seq) FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id)
  WHERE n.name >= 'container/' AND n.name < 'container0'
    AND k.type = (SELECT id FROM names WHERE name = 'container.requested')
)
SELECT
  q.seq, q.at, q.time, q.method, q.code, q.failure, q.message, q.duration_ms,
  q.caller_uid, q.caller_pid, q.caller,
  q.container_id,
  (SELECT name FROM made WHERE id = q.container_id) AS container,
  coalesce(q.own_pod_id, (SELECT pod_id FROM made WHERE id = q.container_id)) AS pod_id,
  CASE WHEN q.named_id IS NOT NULL
    THEN (SELECT namespace FROM made WHERE id = q.named_id)
    ELSE coalesce(q.own_namespace, (
    SELECT json_extract(p.body, '$.config.metadata.namespace') FROM records p
    WHERE typeof(p.stream) = 'integer' AND p.stream = (SELECT +id FROM names WHERE name = 'sandbox/' || q.own_pod_id)
      AND p.type = (SELECT id FROM names WHERE name = 'sandbox.requested') LIMIT 1
  ))
  END AS namespace,
  CASE WHEN q.named_id IS NOT NULL
    THEN (SELECT pod FROM made WHERE id = q.named_id)
    ELSE coalesce(q.own_pod, (
    SELECT json_extract(p.body, '$.config.metadata.name') FROM records p
    WHERE typeof(p.stream) = 'integer' AND p.stream = (SELECT +id FROM names WHERE name = 'sandbox/' || q.own_pod_id)
      AND p.type = (SELECT id FROM names WHERE name = 'sandbox.requested') LIMIT 1
  ))
  END AS pod,
  q.image, q.ended_seq, q.request, q.response
FROM (
  SELECT
    r.seq AS seq,
    r.at AS at,
    strftime('%Y-%m-%dT%H:%M:%S', r.at / 1000000000, 'unixepoch') || printf('.%03dZ', r.at / 1000000 % 1000) AS time,
    CASE json_extract(r.body, '$.request.method')
      WHEN 'Refused' THEN json_extract(r.body, '$.request.rpc')
      WHEN 'Unimplemented' THEN json_extract(r.body, '$.request.rpc')
      ELSE json_extract(r.body, '$.request.method')
    END AS method,
    json_extract(c.body, '$.code') AS code,
    json_extract(c.body, '$.failure.reason') AS failure,
    json_extract(c.body, '$.failure.message') AS message,
    json_extract(c.body, '$.durationNs') / 1000000.0 AS duration_ms,
    json_extract(r.body, '$.caller.uid') AS caller_uid,
    json_extract(r.body, '$.caller.pid') AS caller_pid,
    coalesce(json_extract(r.body, '$.caller.program'), json_extract(r.body, '$.caller.executable')) AS caller,
    CASE json_extract(r.body, '$.request.method')
      WHEN 'CreateContainer' THEN coalesce(json_extract(c.body, '$.response.id'), json_extract(r.body, '$.request.newId'))
      ELSE json_extract(r.body, '$.request.containerId')
    END AS container_id,
    json_extract(r.body, '$.request.containerId') AS named_id,
    CASE json_extract(r.body, '$.request.method')
      WHEN 'RunPodSandbox' THEN coalesce(json_extract(c.body, '$.response.id'), json_extract(r.body, '$.request.newId'))
      ELSE json_extract(r.body, '$.request.podSandboxId')
    END AS own_pod_id,
    CASE WHEN json_extract(r.body, '$.request.method') = 'RunPodSandbox'
      THEN json_extract(r.body, '$.request.config.metadata.namespace') END AS own_namespace,
    CASE WHEN json_extract(r.body, '$.request.method') = 'RunPodSandbox'
      THEN json_extract(r.body, '$.request.config.metadata.name') END AS own_pod,
    coalesce(json_extract(r.body, '$.request.image'), json_extract(r.body, '$.request.config.image.image')) AS image,
    c.seq AS ended_seq,
    json_extract(r.body, '$.request') AS request,
    json_extract(c.body, '$.response') AS response
  FROM records r
  LEFT JOIN records c ON c.call = r.seq AND c.type = (SELECT id FROM names WHERE name = 'call.completed')
  WHERE r.type = (SELECT id FROM names WHERE name = 'call.received')
) q;
