-- The view of calls once more, with the same columns: a pod that is restored is called by its request, as one that is run is;
-- a container that was never made is called as it was asked for; and a call that only reads and was recorded is about what it
-- asked about.

DROP VIEW calls;

CREATE VIEW calls AS
WITH made(id, name, pod_id, namespace, pod) AS MATERIALIZED (
  SELECT
    substr(n.name, 11),
    json_extract(k.body, '$.config.metadata.name'),
    json_extract(k.body, '$.podSandboxId'),
    json_extract(p.body, '$.config.metadata.namespace'),
    json_extract(p.body, '$.config.metadata.name')
  FROM names n
  JOIN records k ON k.seq = (SELECT min(seq) FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id)
  LEFT JOIN records p ON p.type = (SELECT id FROM names WHERE name = 'sandbox.requested') AND p.seq = (
    SELECT min(seq) FROM records
    WHERE typeof(stream) = 'integer'
      AND stream = (SELECT +id FROM names WHERE name = 'sandbox/' || json_extract(k.body, '$.podSandboxId'))
  )
  WHERE n.name >= 'container/' AND n.name < 'container0'
    AND k.type = (SELECT id FROM names WHERE name = 'container.requested')
)
SELECT
  q.seq, q.at, q.time, q.method, q.code, q.failure, q.message, q.duration_ms,
  q.caller_uid, q.caller_pid, q.caller,
  q.container_id,
  coalesce(
    (SELECT name FROM made WHERE id = q.container_id),
    (
      SELECT CASE json_extract(b.body, '$.request.method')
        WHEN 'CreateContainer' THEN json_extract(b.body, '$.request.config.metadata.name')
      END
      FROM records b WHERE b.seq = q.seq
    )
  ) AS container,
  coalesce(q.own_pod_id, (SELECT pod_id FROM made WHERE id = q.container_id)) AS pod_id,
  (
    SELECT CASE
      WHEN json_extract(b.body, '$.request.containerId') IS NOT NULL
        THEN (SELECT namespace FROM made WHERE id = json_extract(b.body, '$.request.containerId'))
      WHEN json_extract(b.body, '$.request.method') IN ('RunPodSandbox', 'RestorePod')
        THEN json_extract(b.body, '$.request.config.metadata.namespace')
      WHEN json_extract(b.body, '$.request.about') LIKE 'container/%'
        THEN (SELECT namespace FROM made WHERE id = substr(json_extract(b.body, '$.request.about'), 11))
      ELSE (
        SELECT json_extract(p.body, '$.config.metadata.namespace') FROM records p
        WHERE typeof(p.stream) = 'integer' AND p.type = (SELECT id FROM names WHERE name = 'sandbox.requested')
          AND p.stream = (
            SELECT +id FROM names
            WHERE name = coalesce('sandbox/' || json_extract(b.body, '$.request.podSandboxId'), json_extract(b.body, '$.request.about'))
          )
        LIMIT 1
      )
    END
    FROM records b WHERE b.seq = q.seq
  ) AS namespace,
  (
    SELECT CASE
      WHEN json_extract(b.body, '$.request.containerId') IS NOT NULL
        THEN (SELECT pod FROM made WHERE id = json_extract(b.body, '$.request.containerId'))
      WHEN json_extract(b.body, '$.request.method') IN ('RunPodSandbox', 'RestorePod')
        THEN json_extract(b.body, '$.request.config.metadata.name')
      WHEN json_extract(b.body, '$.request.about') LIKE 'container/%'
        THEN (SELECT pod FROM made WHERE id = substr(json_extract(b.body, '$.request.about'), 11))
      ELSE (
        SELECT json_extract(p.body, '$.config.metadata.name') FROM records p
        WHERE typeof(p.stream) = 'integer' AND p.type = (SELECT id FROM names WHERE name = 'sandbox.requested')
          AND p.stream = (
            SELECT +id FROM names
            WHERE name = coalesce('sandbox/' || json_extract(b.body, '$.request.podSandboxId'), json_extract(b.body, '$.request.about'))
          )
        LIMIT 1
      )
    END
    FROM records b WHERE b.seq = q.seq
  ) AS pod,
  q.image, q.ended_seq, q.request, q.response
FROM (
  SELECT
    r.seq AS seq,
    r.at AS at,
    strftime('%Y-%m-%dT%H:%M:%S', r.at / 1000000000, 'unixepoch') || printf('.%03dZ', r.at / 1000000 % 1000) AS time,
    (
      SELECT CASE json_extract(b.body, '$.request.method')
        WHEN 'Refused' THEN json_extract(b.body, '$.request.rpc')
        WHEN 'Unimplemented' THEN json_extract(b.body, '$.request.rpc')
        ELSE json_extract(b.body, '$.request.method')
      END
      FROM records b WHERE b.seq = r.seq
    ) AS method,
    json_extract(c.body, '$.code') AS code,
    json_extract(c.body, '$.failure.reason') AS failure,
    json_extract(c.body, '$.failure.message') AS message,
    json_extract(c.body, '$.durationNs') / 1000000.0 AS duration_ms,
    (SELECT json_extract(b.body, '$.caller.uid') FROM records b WHERE b.seq = r.seq) AS caller_uid,
    (SELECT json_extract(b.body, '$.caller.pid') FROM records b WHERE b.seq = r.seq) AS caller_pid,
    (
      SELECT coalesce(json_extract(b.body, '$.caller.program'), json_extract(b.body, '$.caller.executable'))
      FROM records b WHERE b.seq = r.seq
    ) AS caller,
    (
      SELECT CASE json_extract(b.body, '$.request.method')
        WHEN 'CreateContainer' THEN coalesce(json_extract(c.body, '$.response.id'), json_extract(b.body, '$.request.newId'))
        WHEN 'Read' THEN CASE
          WHEN json_extract(b.body, '$.request.about') LIKE 'container/%' THEN substr(json_extract(b.body, '$.request.about'), 11)
        END
        ELSE json_extract(b.body, '$.request.containerId')
      END
      FROM records b WHERE b.seq = r.seq
    ) AS container_id,
    (
      SELECT CASE json_extract(b.body, '$.request.method')
        WHEN 'RunPodSandbox' THEN coalesce(json_extract(c.body, '$.response.id'), json_extract(b.body, '$.request.newId'))
        WHEN 'RestorePod' THEN coalesce(json_extract(c.body, '$.response.id'), json_extract(b.body, '$.request.newId'))
        WHEN 'Read' THEN CASE
          WHEN json_extract(b.body, '$.request.about') LIKE 'sandbox/%' THEN substr(json_extract(b.body, '$.request.about'), 9)
        END
        ELSE json_extract(b.body, '$.request.podSandboxId')
      END
      FROM records b WHERE b.seq = r.seq
    ) AS own_pod_id,
    (
      SELECT coalesce(
        json_extract(b.body, '$.request.image'),
        nullif(json_extract(b.body, '$.request.config.image.userSpecifiedImage'), ''),
        json_extract(b.body, '$.request.config.image.image')
      )
      FROM records b WHERE b.seq = r.seq
    ) AS image,
    c.seq AS ended_seq,
    (SELECT json_extract(b.body, '$.request') FROM records b WHERE b.seq = r.seq) AS request,
    json_extract(c.body, '$.response') AS response
  FROM records r
  LEFT JOIN records c ON c.call = r.seq AND typeof(c.stream) = 'text' AND c.call <> c.seq
    AND c.type = (SELECT id FROM names WHERE name = 'call.completed')
  WHERE r.type = (SELECT id FROM names WHERE name = 'call.received')
) q;
