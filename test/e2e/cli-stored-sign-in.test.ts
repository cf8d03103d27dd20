import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { eventually } from '@sandwire/testing'
import { finish, runCli } from './cli-runner.ts'
import { openReauthorizingDoor } from './support/reauthorizing-door.ts'
import { startSandboxd } from './support/sandboxd.ts'
import { MAIN, SignInScene } from './support/sign-in-scene.ts'

let scene: SignInScene
beforeEach(async () => void (scene = await SignInScene.open()))
afterEach(() => scene[Symbol.asyncDispose]())

describe('a stored sign-in', () => {
  test('is renewed before it ends, and the new refresh token is kept', async () => {
    await scene.login()
    const first = scene.stored
    expect((await scene.cli('whoami')).code).toBe(0)
    expect(scene.relay.grants.filter((grant) => grant === 'refresh_token')).toEqual([])
    scene.expire()
    expect((await scene.cli('whoami')).stdout.toString()).toBe('Ann Archer\n')
    const second = scene.stored
    expect(second.bearer).not.toBe(first.bearer)
    expect(second.renewal.refreshToken).not.toBe(first.renewal.refreshToken)
    expect(scene.asked.at(-1)?.authorization).toBe(`Bearer ${second.bearer}`)
    expect(statSync(scene.storedFile).mode & 0o777).toBe(0o600)
    scene.expire()
    expect((await scene.cli('whoami')).code).toBe(0)
  })

  test('is the ID token where the server wants that, and is renewed like another', async () => {
    scene.answers['GET /api/auth'] = () => scene.auth({ bearer: 'id_token' })
    await scene.login()
    const first = scene.stored
    const claims = JSON.parse(Buffer.from(first.bearer.split('.')[1] ?? '', 'base64url').toString()) as {
      aud: string
      exp: number
    }
    expect(claims.aud).toBe(scene.issuer.clientId)
    expect(first.expiresMs).toBe(claims.exp * 1000)
    scene.expire()
    expect((await scene.cli('whoami')).stdout.toString()).toBe('Ann Archer\n')
    expect(scene.stored.expiresMs).toBeGreaterThan(1)
    expect(scene.stored.renewal.refreshToken).not.toBe(first.renewal.refreshToken)
  })

  test('is renewed once when many processes want it at once', async () => {
    await scene.login()
    scene.expire()
    const runs = await Promise.all(Array.from({ length: 6 }, () => scene.cli('whoami')))
    expect(runs.map((run) => run.stderr + String(run.code)).filter((text) => !text.endsWith('0'))).toEqual([])
    expect(scene.relay.grants.filter((grant) => grant === 'refresh_token')).toHaveLength(1)
    expect(readdirSync(scene.folder)).toHaveLength(1)
  }, 30_000)

  test('is over when the issuer says so, and the next command says so too', async () => {
    await scene.login()
    await scene.issuer.revokePerson('ann')
    scene.expire()
    const run = await scene.cli('whoami')
    expect(run.code).toBe(255)
    expect(run.stderr).toBe(
      `sbx-stdio: Signed out: the issuer no longer accepts this sign-in\nhint: sign in again: npx sbx-stdio login ${scene.url}\n`,
    )
    expect(scene.isSignedIn).toBe(false)
    const next = await scene.cli('whoami', '--url', scene.url)
    expect(next.stderr).toContain(`or sign in: npx sbx-stdio login ${scene.url}`)
  })

  test('stays when the issuer is away, and is used as long as it is good', async () => {
    await scene.login()
    scene.relay.close()
    scene.expire(Date.now() + 20_000)
    expect((await scene.cli('whoami')).code).toBe(0)
    scene.expire()
    const run = await scene.cli('whoami')
    const { host } = new URL(scene.relay.url)
    expect(run.stderr).toBe(
      `sbx-stdio: The issuer ${host} cannot be reached: connection refused\n` +
        'hint: the issuer, who says who you are, does not answer: try again in a moment, or ask whoever runs it\n',
    )
    expect(scene.isSignedIn).toBe(true)
  })

  test('gives way to a token that is given', async () => {
    await scene.login()
    scene.answers['GET /api/whoami'] = () => Response.json({ account: 'a', name: 'A', scopes: [] })
    await runCli([process.execPath, MAIN, 'whoami', '--url', scene.url], {
      env: { ...scene.env, SBX_TOKEN: 'given' },
    })
    expect(scene.asked.at(-1)?.authorization).toBe('Bearer given')
  })

  test('is used by an attach', async () => {
    await scene.login()
    await runCli([process.execPath, MAIN, scene.url, '--retry-for', '0', '--', 'true'], { env: scene.env })
    const attaches = scene.asked.filter(({ what }) => what === 'GET /attach')
    expect(attaches.length).toBeGreaterThan(0)
    for (const { authorization } of attaches) expect(authorization).toBe(`Bearer ${scene.stored.bearer}`)
  })

  test('is shown anew, and fresh, when a server asks for it again; nothing of the stream is lost', async () => {
    await using sandboxd = await startSandboxd()
    await using door = openReauthorizingDoor(sandboxd, (request) => scene.answer(request))
    scene.url = door.url
    await scene.login()
    const first = scene.stored.bearer
    const script =
      'i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo $i; if [ $i = 500 ]; then read x; fi; done'
    const child = scene.start(scene.url, '--', 'sh', '-c', script)
    const done = finish(child)
    await eventually(() => door.shown.length === 1, { what: 'the attach' })
    scene.expire()
    door.askAgain()
    await eventually(() => door.shown.length === 2, { what: 'the second attach' })
    const proc = ['cmdline', 'environ']
      .map((name) => readFileSync(`/proc/${child.pid}/${name}`, 'utf8'))
      .join('')
    for (const secret of [first, scene.stored.bearer, scene.stored.renewal.refreshToken])
      expect(proc).not.toContain(secret)
    void child.stdin.write('go on\n')
    await child.stdin.end()
    const run = await done
    expect(run).toMatchObject({ code: 0, stderr: '' })
    expect(run.stdout.toString()).toBe(Array.from({ length: 2000 }, (_, i) => `${i + 1}\n`).join(''))
    expect(scene.stored.bearer).not.toBe(first)
    expect(door.shown).toEqual([`Bearer ${first}`, `Bearer ${scene.stored.bearer}`])
  }, 30_000)

  /** Refuses bearers that the test says, and knows whom the others are about. */
  const refuse = (isRefused: (bearer: string) => boolean): ((request: Request) => Response | undefined) => {
    return (request) => {
      const bearer = request.headers.get('authorization')?.slice('Bearer '.length) ?? ''
      if (!isRefused(bearer)) return undefined
      return Response.json(
        { error: { code: 'unauthorized', message: 'The token is not accepted' } },
        { status: 401 },
      )
    }
  }
  const refreshes = () => scene.relay.grants.filter((grant) => grant === 'refresh_token').length

  test('is renewed once when the server refuses it before its end', async () => {
    await scene.login()
    const first = scene.stored.bearer
    const check = refuse((bearer) => bearer === first)
    const who = scene.answers['GET /api/whoami']
    scene.answers['GET /api/whoami'] = (request) => check(request) ?? who?.(request) ?? new Response()
    const runs = await Promise.all([scene.cli('whoami'), scene.cli('whoami')])
    expect(runs.map((run) => run.stdout.toString())).toEqual(['Ann Archer\n', 'Ann Archer\n'])
    expect(refreshes()).toBe(1)
    expect(scene.stored.bearer).not.toBe(first)
  }, 30_000)

  test('that the server refuses renewed too is told, and not tried again', async () => {
    await scene.login()
    scene.answers['GET /api/whoami'] = (request) => refuse(() => true)(request) ?? new Response()
    const before = scene.asked.length
    const run = await scene.cli('whoami')
    expect(run.code).toBe(255)
    expect(run.stderr).toBe(
      'sbx-stdio: Signed out: the server no longer accepts this sign-in: The token is not accepted\n' +
        `hint: sign in again: npx sbx-stdio login ${scene.url}\n`,
    )
    expect(scene.asked.slice(before).map(({ what }) => what)).toEqual(['GET /api/whoami', 'GET /api/whoami'])
    expect(refreshes()).toBe(1)
  }, 30_000)

  test('that the server refuses is renewed once for an attach, which goes on', async () => {
    await using sandboxd = await startSandboxd()
    let check: ReturnType<typeof refuse> = () => undefined
    await using door = openReauthorizingDoor(
      sandboxd,
      (request) => scene.answer(request),
      (request) => check(request),
    )
    scene.url = door.url
    await scene.login()
    const first = scene.stored.bearer
    check = refuse((bearer) => bearer === first)
    const run = await runCli([process.execPath, MAIN, scene.url, '--', 'echo', 'there'], { env: scene.env })
    expect(run).toMatchObject({ code: 0, stderr: '' })
    expect(run.stdout.toString()).toBe('there\n')
    expect(refreshes()).toBe(1)
    check = refuse(() => true)
    const end = await runCli([process.execPath, MAIN, scene.url, '--', 'true'], { env: scene.env })
    expect(end.code).toBe(255)
    expect(end.stderr).toBe(
      'sbx-stdio: Signed out: the server no longer accepts this sign-in: The token is not accepted\n' +
        `hint: sign in again: npx sbx-stdio login ${scene.url}\n`,
    )
    expect(refreshes()).toBe(2)
  }, 30_000)

  test('ends an attach in words when it is over', async () => {
    await using sandboxd = await startSandboxd()
    await using door = openReauthorizingDoor(sandboxd, (request) => scene.answer(request))
    scene.url = door.url
    await scene.login()
    const child = scene.start(scene.url, '--', 'cat')
    const done = finish(child)
    await eventually(() => door.shown.length === 1, { what: 'the attach' })
    await scene.issuer.revokePerson('ann')
    scene.expire()
    door.askAgain()
    const run = await done
    expect(run.code).toBe(255)
    expect(run.stderr).toBe(
      `sbx-stdio: Signed out: the issuer no longer accepts this sign-in\nhint: sign in again: npx sbx-stdio login ${scene.url}\n`,
    )
    expect(door.shown).toHaveLength(1)
  }, 30_000)

  test('is sent to no other origin: another port, another name, a redirect (threat T2)', async () => {
    await scene.login()
    const { bearer } = scene.stored
    const seen: (string | null)[] = []
    using other = {
      server: Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        fetch: (request) => {
          seen.push(request.headers.get('authorization'))
          return Response.json({})
        },
      }),
      [Symbol.dispose]() {
        void this.server.stop(true)
      },
    }
    const elsewhere = `http://127.0.0.1:${other.server.port}`
    await scene.cli('whoami', '--url', elsewhere)
    await scene.cli('whoami', '--url', `http://localhost:${other.server.port}`)
    expect(seen).toEqual([null, null])
    scene.answers['GET /api/whoami'] = () => Response.redirect(`${elsewhere}/api/whoami`, 307)
    expect((await scene.cli('whoami')).code).not.toBe(0)
    await scene.cli('whoami', '--url', `http://localhost:${scene.server.port}`)
    expect(seen).toHaveLength(2)
    expect(scene.asked.at(-1)?.authorization).toBeNull()
    expect(scene.asked.at(-2)?.authorization).toBe(`Bearer ${bearer}`)
  })
})
