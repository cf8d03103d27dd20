import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer } from 'node:net'
import { SpritesClient } from '@fly/sprites'
import { eventually } from '../eventually.ts'
import { type FakeSprites, findFakeSpritesProblem, openFakeSprites } from './index.ts'

const problem = findFakeSpritesProblem()

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

describe.skipIf(problem !== undefined)(
  `the fake Sprites API${problem === undefined ? '' : ` (${problem})`}`,
  () => {
    let api: FakeSprites
    beforeAll(async () => {
      api = await openFakeSprites({ sprites: ['dev'] })
    })
    afterAll(() => api[Symbol.asyncDispose]())
    const client = () => new SpritesClient(api.token, { baseURL: api.url })

    test('creates, lists, shows and deletes sprites for the official client', async () => {
      const made = await client().createSprite('other')
      expect(made.name).toBe('other')
      expect((await client().listSprites({ prefix: 'oth' })).sprites.map(({ name }) => name)).toEqual([
        'other',
      ])
      await client().deleteSprite('other')
      expect(api.sprites.has('other')).toBe(false)
    })

    test('runs commands with input, both outputs and their status for the official client', async () => {
      const child = client().sprite('dev').spawn('sh', ['-c', 'cat; echo err >&2; exit 7'])
      let out = ''
      let err = ''
      child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()))
      child.stderr.on('data', (bytes: Buffer) => (err += bytes.toString()))
      await once(child, 'spawn')
      child.stdin.end('hello\n')
      expect(await child.wait()).toBe(7)
      expect({ out, err }).toEqual({ out: 'hello\n', err: 'err\n' })
    })

    test('survives input for a command that has closed its own', async () => {
      const child = client().sprite('dev').spawn('sh', ['-c', 'exec <&-; echo closed; exec sleep 60'])
      let out = ''
      child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()))
      await eventually(() => out === 'closed\n', { what: 'the end of its input' })
      for (let count = 0; count < 3; count++) child.stdin.write('lost\n')
      const [session] = await client().sprite('dev').listSessions()
      await client()
        .sprite('dev')
        .killSession(session?.id ?? '', 'SIGKILL')
      expect(await child.wait()).toBe(137)
    })

    test('runs a terminal that the official client detaches from, finds, attaches to and kills', async () => {
      const sprite = client().sprite('dev')
      const first = sprite.createSession('sh', [], { rows: 30, cols: 100 })
      let seen = ''
      first.stdout.on('data', (bytes: Buffer) => (seen += bytes.toString()))
      await eventually(() => seen.length > 0, { what: 'the prompt' })
      first.stdin.write('echo se""en; stty size\n')
      await eventually(() => seen.includes('seen') && seen.includes('30 100'), { what: 'the output' })
      api.sprite('dev').disconnectAll()
      const [session] = await sprite.listSessions()
      const second = sprite.attachSession(session?.id ?? '')
      second.on('error', () => undefined)
      let replayed = ''
      second.stdout.on('data', (bytes: Buffer) => (replayed += bytes.toString()))
      await eventually(() => replayed.includes('30 100'), { what: 'the replay' })
      await sprite.killSession(session?.id ?? '', 'SIGHUP')
      await eventually(() => api.sprite('dev').sessions.size === 0, { what: 'the end' })
    })

    test('stores files for the official client', async () => {
      const files = client().sprite('dev').filesystem('/home/sprite')
      await files.writeFile('notes/a.txt', 'one')
      expect(await files.readFile('notes/a.txt', 'utf8')).toBe('one')
      expect(await files.readdir('notes')).toEqual(['a.txt'])
      expect(await client().sprite('dev').execFile('cat', ['/home/sprite/notes/a.txt'])).toMatchObject({
        stdout: 'one',
      })
    })

    test('runs services, restarts them, and connects to their ports for the official client', async () => {
      const sprite = client().sprite('dev')
      const args = [
        '-e',
        'Bun.serve({ port: 8099, hostname: "127.0.0.1", fetch: () => new Response("served") })',
      ]
      for await (const _ of await sprite.createService('web', { cmd: process.execPath, args })) void _
      expect(await sprite.getService('web')).toMatchObject({ state: { status: 'running' } })
      // The official client waits ten seconds for a port that refuses it.
      const listens = async () => {
        const connection = await api.sprite('dev').connect(8099)
        connection?.close()
        return connection !== undefined
      }
      await eventually(listens, { what: 'the service to listen' })
      const port = await findFreePort()
      const proxy = await sprite.proxyPort(port, 8099)
      const ask = async () => {
        const { promise, resolve } = Promise.withResolvers<string>()
        let text = ''
        const socket = createConnection({ port, host: '127.0.0.1' })
        socket.on('data', (bytes) => (text += bytes.toString()))
        socket.on('close', () => resolve(text))
        socket.on('error', () => resolve(''))
        socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
        return promise
      }
      await eventually(async () => (await ask()).includes('served'), { what: 'the service to respond' })
      proxy.close()
      for await (const _ of await sprite.stopService('web')) void _
      await sprite.deleteService('web')
      expect(await sprite.listServices()).toEqual([])
    })

    test('makes and restores checkpoints for the official client', async () => {
      const sprite = client().sprite('dev')
      const files = sprite.filesystem('/home/sprite')
      await files.writeFile('state', 'before')
      await (await sprite.createCheckpoint('first')).processAll(() => undefined)
      await files.writeFile('state', 'after')
      const [checkpoint] = await sprite.listCheckpoints()
      expect(checkpoint?.comment).toBe('first')
      await (await sprite.restoreCheckpoint(checkpoint?.id ?? '')).processAll(() => undefined)
      expect(await files.readFile('state', 'utf8')).toBe('before')
    })

    test('refuses a wrong token, and answers as a test says', async () => {
      const stranger = new SpritesClient('wrong', { baseURL: api.url })
      expect(await stranger.getSprite('dev').catch((error: unknown) => String(error))).toContain(
        'invalid token',
      )
      api.behavior.intercept = () => Response.json({ error: 'busy' }, { status: 503 })
      expect((await fetch(`${api.url}/v1/sprites`)).status).toBe(503)
      api.behavior.intercept = undefined
    })

    test('keeps processes while it is frozen, and ends them when it goes cold', async () => {
      const sprite = client().sprite('dev')
      const session = sprite.createSession('sh')
      session.on('error', () => undefined)
      await eventually(async () => (await sprite.listSessions()).length === 1, { what: 'the session' })
      api.sprite('dev').freeze()
      expect(api.sprite('dev').status).toBe('warm')
      expect(await sprite.listSessions()).toHaveLength(1)
      await api.sprite('dev').freezeCold()
      expect(await sprite.listSessions()).toEqual([])
      expect((await sprite.execFile('echo', ['awake'])).stdout).toBe('awake\n')
    })
  },
)
