/** Pulls from docker-registry as it is run: behind passwords, and behind nginx with TLS and client certificates. Needs root. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { buildImage } from '../../../scripts/lib/image.ts';
import type { RegistryCredentials } from '../../../src/adapters/images/types.ts';
import { cleanupAfterAll } from '../../support/cleanup.ts';
import { freePort } from '../../support/free-port.ts';
import { makeCertificates } from '../../support/images/fault-server.ts';
import { startStore } from '../../support/images/store.ts';
import { startProcess } from '../../support/process.ts';
import { type Registry, startRegistry } from '../../support/registry.ts';
import { tempDir } from '../../support/temp-dir.ts';

const password = 'registry-password';
/** bcrypt of it, as htpasswd -B writes it. */
const htpasswd = 'user:$2y$10$abcdefghijklmnopqrstuum9yCXx6ZFPKot82rgtKt.dFmIKMYf96\n';
const credentials: Readonly<Record<string, RegistryCredentials>> = {
  right: { username: 'user', password },
  encoded: { auth: Buffer.from(`user:${password}`).toString('base64') },
  wrong: { username: 'user', password: 'another' },
  elsewhere: { username: 'user', password, serverAddress: 'registry.example' },
};

describe('a real registry', { timeout: 60_000 }, () => {
  const owner = cleanupAfterAll();
  let registry: Registry;

  before(async () => {
    const path = join(await tempDir(owner), 'htpasswd');
    await writeFile(path, htpasswd);
    registry = await startRegistry(owner, { config: `auth: {htpasswd: {realm: test, path: ${path}}}` });
    await registry.push('app', 'v1', await buildImage([[{ name: 'file', content: 'x' }]]));
  });

  it('with passwords lets in who has the right one, in either form, and nobody else', async (t) => {
    const store = await startStore(t, { credentials: (token) => credentials[token] ?? null });
    const reference = `${registry.host}/app:v1`;
    for (const who of [undefined, 'wrong', 'elsewhere']) {
      const failure = await store.failedPull(reference, who);
      assert.equal(failure.reason, 'RegistryDenied', who);
      assert.ok(!failure.message.includes(password));
    }
    for (const who of ['right', 'encoded']) assert.equal((await store.pull(reference, who)).layers.length, 1);
  });

  it('behind TLS is asked with the authority and client certificate of its hosts.toml', async (t) => {
    const directory = await tempDir(t);
    const { caPath, cert, key } = await makeCertificates(t);
    const port = await freePort();
    const [certPath, keyPath, config] = ['cert.pem', 'key.pem', 'nginx.conf'].map((name) => join(directory, name));
    assert.ok(certPath && keyPath && config);
    await writeFile(certPath, cert);
    await writeFile(keyPath, key);
    await writeFile(
      config,
      `daemon off; master_process off; pid ${directory}/pid; error_log stderr notice; events {}
       http { access_log off; client_body_temp_path ${directory}/body; proxy_temp_path ${directory}/proxy;
         fastcgi_temp_path ${directory}/f; uwsgi_temp_path ${directory}/u; scgi_temp_path ${directory}/s;
         server { listen 127.0.0.1:${port} ssl; ssl_certificate ${certPath}; ssl_certificate_key ${keyPath};
           ssl_verify_client on; ssl_client_certificate ${caPath};
           location / { proxy_pass http://${registry.host}; proxy_set_header Host $http_host; } } }`,
    );
    const nginx = await startProcess(t, ['nginx', '-e', 'stderr', '-c', config]);
    await nginx.until(/start worker|using the "/);

    const host = `localhost:${port}`;
    const withHosts = async (text: string): Promise<readonly string[]> => {
      const root = await tempDir(t);
      await mkdir(join(root, host));
      await writeFile(join(root, host, 'hosts.toml'), `server = "https://${host}"\n${text}`);
      return [root];
    };
    const reference = `${host}/app:v1`;
    const client = `client = [["${certPath}", "${keyPath}"]]\n`;
    const given = { credentials: (token: string) => credentials[token] ?? null, limits: { attemptsMax: 1 } };
    for (const text of [`ca = "${caPath}"\n${client}`, `skip_verify = true\n${client}`]) {
      const store = await startStore(t, { ...given, registryConfigDirs: await withHosts(text) });
      assert.equal((await store.pull(reference, 'right')).layers.length, 1);
    }
    // Without a certificate nginx says 400; without the authority nothing is asked at all.
    for (const text of [`ca = "${caPath}"\n`, client]) {
      const store = await startStore(t, { ...given, registryConfigDirs: await withHosts(text) });
      assert.equal((await store.failedPull(reference, 'right')).reason, 'RegistryFailed');
    }
  });
});
