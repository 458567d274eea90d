-- What people ask of a node, as views over the records: their names and columns are stable, docs/sql.md describes them.
-- Bodies are JSON, which SQLite reads itself. Nothing is stored twice and the writer does nothing for them; a column that a
-- query does not name costs nothing. The + before an id has SQLite use the index on streams, which hold text too. Times are
-- in UTC with milliseconds; at is in nanoseconds since 1970.

CREATE VIEW pods AS
SELECT
  substr(n.name, 9) AS id,
  json_extract(r.body, '$.config.metadata.namespace') AS namespace,
  json_extract(r.body, '$.config.metadata.name') AS name,
  json_extract(r.body, '$.config.metadata.uid') AS uid,
  coalesce(json_extract(r.body, '$.config.metadata.attempt'), 0) AS attempt,
  json_extract(r.body, '$.config.labels') AS labels,
  json_extract(r.body, '$.config.annotations') AS annotations,
  (SELECT strftime('%Y-%m-%dT%H:%M:%S', at / 1000000000, 'unixepoch') || printf('.%03dZ', at / 1000000 % 1000) FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'sandbox.ready') LIMIT 1) AS ready,
  (SELECT strftime('%Y-%m-%dT%H:%M:%S', at / 1000000000, 'unixepoch') || printf('.%03dZ', at / 1000000 % 1000) FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'sandbox.stopped') LIMIT 1) AS stopped,
  (SELECT strftime('%Y-%m-%dT%H:%M:%S', at / 1000000000, 'unixepoch') || printf('.%03dZ', at / 1000000 % 1000) FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'sandbox.removed') LIMIT 1) AS removed,
  (SELECT json_extract(body, '$.failure.message') FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'sandbox.failed') LIMIT 1) AS failure,
  r.seq AS seq,
  r.at AS at,
  strftime('%Y-%m-%dT%H:%M:%S', r.at / 1000000000, 'unixepoch') || printf('.%03dZ', r.at / 1000000 % 1000) AS time
FROM names n
JOIN records r ON typeof(r.stream) = 'integer' AND r.stream = +n.id
WHERE n.name >= 'sandbox/' AND n.name < 'sandbox0' AND r.type = (SELECT id FROM names WHERE name = 'sandbox.requested');

CREATE VIEW containers AS
SELECT
  substr(n.name, 11) AS id,
  json_extract(r.body, '$.config.metadata.name') AS name,
  coalesce(json_extract(r.body, '$.config.metadata.attempt'), 0) AS attempt,
  json_extract(r.body, '$.podSandboxId') AS pod_id,
  (
    SELECT json_extract(p.body, '$.config.metadata.namespace') FROM records p
    WHERE typeof(p.stream) = 'integer' AND p.stream = (SELECT +id FROM names WHERE name = 'sandbox/' || json_extract(r.body, '$.podSandboxId'))
      AND p.type = (SELECT id FROM names WHERE name = 'sandbox.requested') LIMIT 1
  ) AS namespace,
  (
    SELECT json_extract(p.body, '$.config.metadata.name') FROM records p
    WHERE typeof(p.stream) = 'integer' AND p.stream = (SELECT +id FROM names WHERE name = 'sandbox/' || json_extract(r.body, '$.podSandboxId'))
      AND p.type = (SELECT id FROM names WHERE name = 'sandbox.requested') LIMIT 1
  ) AS pod,
  json_extract(r.body, '$.config.image.image') AS image,
  json_extract(r.body, '$.imageId') AS image_id,
  json_extract(r.body, '$.config.labels') AS labels,
  (SELECT strftime('%Y-%m-%dT%H:%M:%S', at / 1000000000, 'unixepoch') || printf('.%03dZ', at / 1000000 % 1000) FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'container.started') LIMIT 1) AS started,
  (SELECT json_extract(body, '$.pid') FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'container.started') LIMIT 1) AS pid,
  (SELECT strftime('%Y-%m-%dT%H:%M:%S', at / 1000000000, 'unixepoch') || printf('.%03dZ', at / 1000000 % 1000) FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'container.exited') LIMIT 1) AS exited,
  (SELECT json_extract(body, '$.exitStatus') FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'container.exited') LIMIT 1) AS exit_status,
  (SELECT json_extract(body, '$.reason') FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'container.exited') LIMIT 1) AS reason,
  (SELECT strftime('%Y-%m-%dT%H:%M:%S', at / 1000000000, 'unixepoch') || printf('.%03dZ', at / 1000000 % 1000) FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'container.removed') LIMIT 1) AS removed,
  (SELECT json_extract(body, '$.failure.message') FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'container.failed') LIMIT 1) AS failure,
  r.seq AS seq,
  r.at AS at,
  strftime('%Y-%m-%dT%H:%M:%S', r.at / 1000000000, 'unixepoch') || printf('.%03dZ', r.at / 1000000 % 1000) AS time
FROM names n
JOIN records r ON typeof(r.stream) = 'integer' AND r.stream = +n.id
WHERE n.name >= 'container/' AND n.name < 'container0' AND r.type = (SELECT id FROM names WHERE name = 'container.requested');

CREATE VIEW exits AS
SELECT
  r.seq AS seq,
  r.at AS at,
  strftime('%Y-%m-%dT%H:%M:%S', r.at / 1000000000, 'unixepoch') || printf('.%03dZ', r.at / 1000000 % 1000) AS time,
  substr(n.name, 11) AS container_id,
  (
    SELECT json_extract(k.body, '$.config.metadata.name') FROM records k
    WHERE typeof(k.stream) = 'integer' AND k.stream = (SELECT +id FROM names WHERE name = 'container/' || substr(n.name, 11))
      AND k.type = (SELECT id FROM names WHERE name = 'container.requested') LIMIT 1
  ) AS container,
  coalesce((
    SELECT json_extract(k.body, '$.config.metadata.attempt') FROM records k
    WHERE typeof(k.stream) = 'integer' AND k.stream = (SELECT +id FROM names WHERE name = 'container/' || substr(n.name, 11))
      AND k.type = (SELECT id FROM names WHERE name = 'container.requested') LIMIT 1
  ), 0) AS attempt,
  (
    SELECT json_extract(k.body, '$.podSandboxId') FROM records k
    WHERE typeof(k.stream) = 'integer' AND k.stream = (SELECT +id FROM names WHERE name = 'container/' || substr(n.name, 11))
      AND k.type = (SELECT id FROM names WHERE name = 'container.requested') LIMIT 1
  ) AS pod_id,
  (
    SELECT json_extract(p.body, '$.config.metadata.namespace') FROM records p
    WHERE typeof(p.stream) = 'integer' AND p.stream = (SELECT +id FROM names WHERE name = 'sandbox/' || (
    SELECT json_extract(k.body, '$.podSandboxId') FROM records k
    WHERE typeof(k.stream) = 'integer' AND k.stream = (SELECT +id FROM names WHERE name = 'container/' || substr(n.name, 11))
      AND k.type = (SELECT id FROM names WHERE name = 'container.requested') LIMIT 1
  ))
      AND p.type = (SELECT id FROM names WHERE name = 'sandbox.requested') LIMIT 1
  ) AS namespace,
  (
    SELECT json_extract(p.body, '$.config.metadata.name') FROM records p
    WHERE typeof(p.stream) = 'integer' AND p.stream = (SELECT +id FROM names WHERE name = 'sandbox/' || (
    SELECT json_extract(k.body, '$.podSandboxId') FROM records k
    WHERE typeof(k.stream) = 'integer' AND k.stream = (SELECT +id FROM names WHERE name = 'container/' || substr(n.name, 11))
      AND k.type = (SELECT id FROM names WHERE name = 'container.requested') LIMIT 1
  ))
      AND p.type = (SELECT id FROM names WHERE name = 'sandbox.requested') LIMIT 1
  ) AS pod,
  json_extract(r.body, '$.exitStatus') AS exit_status,
  CASE WHEN json_extract(r.body, '$.exitStatus') BETWEEN 129 AND 192 THEN json_extract(r.body, '$.exitStatus') - 128 END
    AS signal,
  json_extract(r.body, '$.reason') AS reason,
  json_extract(r.body, '$.message') AS message,
  (SELECT json_extract(e.body, '$.exit.oomKills') FROM records e WHERE e.seq = r.cause) AS oom_kills,
  (r.at - (SELECT at FROM records WHERE typeof(stream) = 'integer' AND stream = +n.id AND type = (SELECT id FROM names WHERE name = 'container.started') LIMIT 1)) / 1000000 AS ran_ms
FROM records r
JOIN names n ON n.id = r.stream
WHERE r.type = (SELECT id FROM names WHERE name = 'container.exited');

CREATE VIEW calls AS
SELECT
  q.seq, q.at, q.time, q.method, q.code, q.failure, q.message, q.duration_ms,
  q.caller_uid, q.caller_pid, q.caller,
  q.container_id,
  (
    SELECT json_extract(k.body, '$.config.metadata.name') FROM records k
    WHERE typeof(k.stream) = 'integer' AND k.stream = (SELECT +id FROM names WHERE name = 'container/' || q.container_id)
      AND k.type = (SELECT id FROM names WHERE name = 'container.requested') LIMIT 1
  ) AS container,
  coalesce(q.own_pod_id, (
    SELECT json_extract(k.body, '$.podSandboxId') FROM records k
    WHERE typeof(k.stream) = 'integer' AND k.stream = (SELECT +id FROM names WHERE name = 'container/' || q.container_id)
      AND k.type = (SELECT id FROM names WHERE name = 'container.requested') LIMIT 1
  )) AS pod_id,
  coalesce(q.own_namespace, (
    SELECT json_extract(p.body, '$.config.metadata.namespace') FROM records p
    WHERE typeof(p.stream) = 'integer' AND p.stream = (SELECT +id FROM names WHERE name = 'sandbox/' || coalesce(q.own_pod_id, (
    SELECT json_extract(k.body, '$.podSandboxId') FROM records k
    WHERE typeof(k.stream) = 'integer' AND k.stream = (SELECT +id FROM names WHERE name = 'container/' || q.container_id)
      AND k.type = (SELECT id FROM names WHERE name = 'container.requested') LIMIT 1
  )))
      AND p.type = (SELECT id FROM names WHERE name = 'sandbox.requested') LIMIT 1
  )) AS namespace,
  coalesce(q.own_pod, (
    SELECT json_extract(p.body, '$.config.metadata.name') FROM records p
    WHERE typeof(p.stream) = 'integer' AND p.stream = (SELECT +id FROM names WHERE name = 'sandbox/' || coalesce(q.own_pod_id, (
    SELECT json_extract(k.body, '$.podSandboxId') FROM records k
    WHERE typeof(k.stream) = 'integer' AND k.stream = (SELECT +id FROM names WHERE name = 'container/' || q.container_id)
      AND k.type = (SELECT id FROM names WHERE name = 'container.requested') LIMIT 1
  )))
      AND p.type = (SELECT id FROM names WHERE name = 'sandbox.requested') LIMIT 1
  )) AS pod,
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

CREATE VIEW exec_sessions AS
SELECT
  seq, at, time, method,
  json_extract(request, '$.cmd') AS command,
  coalesce(json_extract(request, '$.tty'), 0) AS tty,
  coalesce(json_extract(request, '$.stdin'), 0) AS stdin,
  json_extract(request, '$.port') AS port,
  container_id, container, pod_id, namespace, pod,
  caller_uid, caller_pid, caller,
  code, message,
  json_extract(response, '$.exitCode') AS exit_code,
  json_extract(response, '$.stdinBytes') AS stdin_bytes,
  json_extract(response, '$.stdoutBytes') AS stdout_bytes,
  json_extract(response, '$.stderrBytes') AS stderr_bytes,
  duration_ms
FROM calls
WHERE method IN ('ExecSync', 'ExecSession', 'AttachSession', 'PortForwardSession');

CREATE VIEW image_pulls AS
SELECT
  seq, at, time, image, code, failure, message, duration_ms, caller_uid, caller_pid, caller,
  json_extract(response, '$.imageRefs[0]') AS image_id,
  (
    SELECT json_extract(i.body, '$.image.sizeBytes') FROM records i
    WHERE i.call = calls.seq AND i.type = (SELECT id FROM names WHERE name = 'image.pulled') LIMIT 1
  ) AS size_bytes
FROM calls
WHERE method = 'PullImage';

CREATE VIEW nri_decisions AS
SELECT
  r.seq AS seq,
  r.at AS at,
  strftime('%Y-%m-%dT%H:%M:%S', r.at / 1000000000, 'unixepoch') || printf('.%03dZ', r.at / 1000000 % 1000) AS time,
  json_extract(answer.value, '$.plugin') AS plugin,
  json_extract(q.body, '$.effects[' || substr(json_extract(r.body, '$.effect'), instr(json_extract(r.body, '$.effect'), '.') + 1) || '].hook') AS hook,
  CASE
    WHEN json_extract(answer.value, '$.failure.kind') IS NOT NULL THEN json_extract(answer.value, '$.failure.kind')
    WHEN json_extract(answer.value, '$.answer.rejected') IS NOT NULL THEN 'refused'
    WHEN coalesce(json_extract(answer.value, '$.answer.adjust'), '{}') <> '{}' THEN 'adjusted'
    WHEN coalesce(json_extract(answer.value, '$.answer.updates'), '[]') <> '[]' THEN 'updated'
    ELSE 'agreed'
  END AS decision,
  coalesce(json_extract(answer.value, '$.failure.message'), json_extract(answer.value, '$.answer.rejected.reason'))
    AS message,
  json_extract(answer.value, '$.answer') AS answer,
  json_extract(answer.value, '$.durationNs') / 1000000.0 AS duration_ms,
  substr(n.name, 1, instr(n.name, '/') - 1) AS about,
  substr(n.name, instr(n.name, '/') + 1) AS id,
  r.call AS call_seq
FROM records r
JOIN names n ON n.id = r.stream
JOIN records q ON q.seq = r.cause
JOIN json_each(r.body, '$.result.answers') answer
WHERE r.type = (SELECT id FROM names WHERE name = 'effect.ended') AND json_extract(r.body, '$.kind') = 'CallPlugins';
