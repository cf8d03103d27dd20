import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, openRawTcp, openRawWebSocket, readDescendants } from '@sandwire/testing'
import { finish, startCli } from './cli-runner.ts'
import { readShell, runShell } from './support/attached.ts'
import { Deployment } from './support/deployment.ts'
import { mintHex } from './support/wire-client.ts'

/** Files that hold a secret by design, readable by their owner only. */
const SAFES = ['local-token', 'keys/signing-key', 'keys/id-key', 'keys/session-token-secret']
/** Larger files are disk images, which are searched from inside the sandbox. */
const MAX_FILE_BYTES = 64 * 1024 ** 2

/** A unique secret in the format of ours. */
function mintCanary(prefix = ''): string {
  return `${prefix}CNRY${mintHex()}1234567`
}

/** One secret for every position where a client or operator can put a credential. */
const canaries = {
  environment: mintCanary(),
  wrongToken: mintCanary('swl_'),
  urlToken: mintCanary(),
  userInfo: mintCanary(),
  basic: mintCanary(),
  cookie: mintCanary('sws_local.'),
  otherCookie: mintCanary(),
  wrongCode: mintCanary(),
  subprotocol: mintCanary(),
  origin: mintCanary().toLowerCase(),
  referer: mintCanary(),
  internal: mintCanary(),
  jwtSecret: mintCanary(),
  apiToken: mintCanary(),
  // Its length is that of base64.
  sessionTokenSecret: `${mintCanary()}8`,
  wrongJwt: mintCanary(),
  wrongTicket: mintCanary(),
  wrongLink: mintCanary(),
  wrongSessionToken: mintCanary(),
  cliVariable: mintCanary(),
}

/** The host's environment, the only one that may contain these secrets. */
const GIVEN = {
  environment: canaries.environment,
  jwtSecret: canaries.jwtSecret,
  apiToken: canaries.apiToken,
  sessionTokenSecret: canaries.sessionTokenSecret,
}

/** A service token signed with the operator's secret. */
function serviceToken(subject: string): string {
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { sub: subject, exp: Math.floor(Date.now() / 1000) + 600 }
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`
  return `${signed}.${createHmac('sha256', canaries.jwtSecret).update(signed).digest('base64url')}`
}

/** A forged issuer token whose signature is a secret. */
function jwtWith(signature: string): string {
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${encode({ alg: 'RS256', kid: signature })}.${encode({ iss: 'https://id.example', sub: signature })}.${signature}`
}

function textIn(body: unknown, key: string): string {
  return String(Reflect.get(Object(body), key))
}

/** The content of every file below a folder. */
function readBelow(folder: string): { readonly name: string; readonly text: string }[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).flatMap((name) => {
    const file = join(folder, name)
    const stat = statSync(file, { throwIfNoEntry: false })
    if (stat?.isFile() !== true || stat.size > MAX_FILE_BYTES) return []
    return [{ name, text: readFileSync(file, 'latin1') }]
  })
}

describe('a secret (threat T2)', () => {
  let deployment: Deployment
  /** Secrets by the name of their position. */
  const secrets = new Map<string, string>(Object.entries(canaries))
  /** Headers and bodies of all responses. */
  const responses: string[] = []
  let inside: ReturnType<typeof runShell>

  const ask = async (path: string, init: RequestInit = {}): Promise<Response> => {
    const response = await fetch(`http://127.0.0.1:${deployment.host.port}${path}`, {
      ...init,
      keepalive: false,
    })
    responses.push(
      `${JSON.stringify([...response.headers].filter(([name]) => name !== 'set-cookie'))}${await response.clone().text()}`,
    )
    return response
  }
  const signIn = (code: string): Promise<Response> => {
    const [, host = ''] = /http:\/\/(\S+)\/signin#/.exec(deployment.host.output()) ?? []
    return ask('/api/signin', {
      method: 'POST',
      headers: { 'content-type': 'application/json', host, origin: `http://${host}` },
      body: JSON.stringify({ code }),
    })
  }

  const post = (
    path: string,
    body: unknown,
    headers: Record<string, string>,
  ): RequestInit & { path: string } => ({
    path,
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  /** A response that issues a secret to its client, which is allowed to contain it. */
  const obtain = async ({ path, ...init }: RequestInit & { path: string }): Promise<Response> => {
    const response = await fetch(`http://127.0.0.1:${deployment.host.port}${path}`, {
      ...init,
      keepalive: false,
    })
    if (!response.ok) throw new Error(`Cannot obtain ${path}: ${await response.text()}`)
    return response
  }

  /** Uses the operator's credentials. */
  const useOwnCredentials = async (): Promise<void> => {
    const jwt = serviceToken('ada')
    secrets.set('service token', jwt.split('.')[2] ?? '')
    for (const bearer of [jwt, canaries.apiToken]) {
      const headers = { authorization: `Bearer ${bearer}` }
      expect((await ask('/api/whoami', { headers })).status).toBe(200)
      expect((await ask('/api/sandboxes/dev', { headers })).status).toBe(404)
      await ask(`/attach?sandbox=dev&cmd=cat&token=${bearer}`, {})
    }
  }

  /** Creates a share link, a ticket and a session token, uses them, and uses them again. */
  const share = async (session: string): Promise<void> => {
    const { port, headers } = deployment.host
    const made: unknown = await (
      await obtain(post('/api/grants', { session, role: 'viewer' }, headers))
    ).json()
    const link = textIn(made, 'link').split('#')[1] ?? ''
    secrets.set('link secret', link.split('.').at(-1) ?? '')
    const guest: unknown = await (
      await obtain(post('/api/grants/redeem', { link, name: 'guest' }, {}))
    ).json()
    secrets.set('guest token', textIn(guest, 'token'))
    const again = post('/api/grants/redeem', { link }, {})
    expect((await ask(again.path, again)).status).toBe(410)
    const invented = link.replace(/[^.]+$/, canaries.wrongLink)
    const wrong = post('/api/grants/redeem', { link: invented }, {})
    expect((await ask(wrong.path, wrong)).ok).toBe(false)

    const held = { authorization: `Bearer ${textIn(guest, 'token')}` }
    const given: unknown = await (
      await obtain(post('/api/tickets', { session, role: 'viewer' }, held))
    ).json()
    const ticket = textIn(given, 'ticket')
    secrets.set('ticket', ticket.split('.').at(-1) ?? '')
    const useTicket = (): ReturnType<typeof openRawWebSocket> =>
      openRawWebSocket({
        port,
        path: `/attach?session=${session}&role=viewer`,
        subprotocols: ['sandwire.v1', `sandwire.ticket.${ticket}`],
      })
    const opened = await useTicket()
    expect(opened.kind).toBe('open')
    if (opened.kind === 'open') opened.socket.reset()
    const refused = await useTicket()
    expect(refused.kind).toBe('refused')
    if (refused.kind === 'refused') responses.push(JSON.stringify([...refused.headers]), refused.body)
    const shown: unknown = await (await obtain({ path: `/api/account/sessions/${session}`, headers })).json()
    secrets.set('session token', textIn(shown, 'token'))
    await openRawWebSocket({ port, path: `/terminal/${textIn(shown, 'token')}`, headers })
  }

  /** Every success and failure that handles a credential. */
  beforeAll(async () => {
    deployment = await Deployment.open({
      env: {
        SANDWIRE_CANARY: canaries.environment,
        NPM_TOKEN: canaries.environment,
        JWT_SECRET: canaries.jwtSecret,
        API_TOKEN: canaries.apiToken,
        SESSION_TOKEN_SECRET: `k1:${canaries.sessionTokenSecret}`,
      },
    })
    const { port, headers, token, data } = deployment.host
    const { id } = await deployment.create('dev')
    inside = runShell(deployment.sandbox('dev'), 'echo ready; cat')
    await inside.waitFor('ready')
    secrets.set('token', token)
    for (const file of SAFES) secrets.set(file, readFileSync(join(data, file), 'utf8').trim())

    const code = /signin#([A-Za-z0-9_-]+)/.exec(deployment.host.output())?.[1] ?? ''
    const signedIn = await signIn(code)
    expect(signedIn.status).toBe(204)
    secrets.set('sign-in code', code)
    secrets.set('session cookie', /=(sws_[^;]+)/.exec(signedIn.headers.get('set-cookie') ?? '')?.[1] ?? '')
    expect((await signIn(canaries.wrongCode)).status).toBe(401)

    await useOwnCredentials()
    await share(inside.session)

    const { cookie, otherCookie, referer, internal } = canaries
    const wrong = [
      { authorization: `Bearer ${canaries.wrongToken}` },
      { authorization: `Basic ${canaries.basic}` },
      { authorization: `Bearer ${jwtWith(canaries.wrongJwt)}` },
      { 'sec-websocket-protocol': `sandwire.v1, sandwire.ticket.${id}.${canaries.wrongTicket}` },
      { cookie: `__Host-sandwire=${cookie}; other=${otherCookie}`, 'sec-fetch-site': 'same-origin' },
      { ...headers, origin: `https://${canaries.origin}.example` },
      { ...headers, referer: `http://x/${referer}`, 'x-sandwire-call': internal, 'x-request-id': internal },
    ]
    for (const each of wrong)
      for (const path of [
        '/api/sandboxes',
        `/api/sandboxes/${id}`,
        '/attach?sandbox=dev&cmd=cat',
        '/nowhere',
        '/logs/dev',
        `/terminal/${canaries.wrongSessionToken}`,
      ]) {
        await ask(path, { headers: each })
        await openRawWebSocket({ port, path, headers: each })
      }
    for (const path of ['/attach?sandbox=dev&cmd=cat', '/api/sandboxes', '/healthz', '/nowhere'])
      await ask(`${path}${path.includes('?') ? '&' : '?'}token=${canaries.urlToken}`, { headers })
    await openRawWebSocket({
      port,
      path: '/attach?sandbox=dev&cmd=cat',
      subprotocols: ['sandwire.v1', canaries.subprotocol],
    })
    await using tcp = await openRawTcp({ port })
    await tcp.write(
      `GET http://user:${canaries.userInfo}@127.0.0.1:${port}/api/sandboxes HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`,
    )
    responses.push(new TextDecoder().decode(await tcp.read()))

    const cli = startCli([...deployment.cli('dev'), '--cmd', 'cat'], {
      ...deployment.env,
      SBX_TOKEN: canaries.wrongToken,
      SBX_CANARY: canaries.cliVariable,
    })
    await cli.stdin.end()
    const refused = await finish(cli)
    expect(refused.code).toBe(255)
    responses.push(refused.stderr, refused.stdout.toString())

    await deployment.create('failing', { limits: { memoryBytes: 16 * 1024 ** 2 } }).catch(() => undefined)
    await deployment.killWorkerd()
    await eventually(async () => (await deployment.fetch('/healthz').catch(() => undefined))?.ok, {
      what: 'control',
    })
  })
  afterAll(() => deployment[Symbol.asyncDispose]())

  /** Names of the secrets that a text contains. */
  const foundIn = (text: string): string[] =>
    [...secrets].filter(([, secret]) => text.includes(secret)).map(([name]) => name)

  test('was used', () => {
    const made = ['service token', 'link secret', 'guest token', 'ticket', 'session token']
    expect(secrets.size).toBe(Object.keys(canaries).length + 1 + SAFES.length + 2 + made.length)
    for (const secret of secrets.values()) expect(secret.length).toBeGreaterThanOrEqual(16)
    expect(responses.length).toBeGreaterThan(20)
  })

  test('is in no file except its own, and in no log', () => {
    const files = readBelow(deployment.folder)
    expect(files.some(({ name }) => name.endsWith('.sqlite'))).toBe(true)
    expect(files.some(({ name }) => name.endsWith('log.jsonl'))).toBe(true)
    const found = files.flatMap(({ name, text }) => foundIn(text).map((secret) => `${secret} in ${name}`))
    const own = ['token in data/local-token', ...SAFES.map((safe) => `${safe} in data/${safe}`)]
    expect(found.toSorted()).toEqual(own.toSorted())
  })

  test('is in no response, and in no printed line except the sign-in link', () => {
    expect(responses.flatMap(foundIn)).toEqual([])
    expect(foundIn(deployment.host.output())).toEqual(['sign-in code'])
  })

  test('is in no arguments or environment of a process', () => {
    const all = [deployment.host.pid, ...readDescendants(deployment.host.pid).map(({ pid }) => pid)]
    const readOf = (pid: number, file: string): string => {
      try {
        return readFileSync(`/proc/${pid}/${file}`, 'latin1')
      } catch {
        // Owned by another user, or ended.
        return ''
      }
    }
    expect(all.length).toBeGreaterThan(4)
    expect(all.flatMap((pid) => foundIn(readOf(pid, 'cmdline')))).toEqual([])
    // The host's own environment was set by its caller and is not inherited.
    const [host = '', ...others] = all.map((pid) => readOf(pid, 'environ'))
    expect(foundIn(host).toSorted()).toEqual(Object.keys(GIVEN).toSorted())
    expect(others.flatMap(foundIn)).toEqual([])
  })

  test('is not in a sandbox', async () => {
    // Encoded, because the search pattern itself is in the sandbox.
    const words = [...secrets.values()].map((secret) => Buffer.from(secret).toString('base64')).join(' ')
    const script = `for word in ${words}; do printf %s "$word" | base64 -d; echo; done > /tmp/words
      look() {
        env | grep -F -f /tmp/words
        cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -F -f /tmp/words
        grep -r -l -F -f /tmp/words / --exclude-dir=proc --exclude-dir=usr --exclude=words 2>/dev/null
      }
      look; echo looked; tail -n 1 /tmp/words > ~/planted; look`
    expect(await readShell(deployment.sandbox('dev'), script)).toBe('looked\n/home/user/planted\n')
  })
})
