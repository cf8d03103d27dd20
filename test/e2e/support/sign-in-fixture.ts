import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import type { TestIssuer } from '@sandwire/testing/issuer'
import { type CommandRun, runInProcess, startCommand } from '../../../apps/cli/test/in-process.ts'
import { MAIN, startCli } from '../cli-runner.ts'
import { type IssuerRelay, openIssuerRelay } from './issuer-relay.ts'

/** A sign-in as it is stored. */
interface Stored {
  readonly bearer: string
  readonly expiresMs: number
  readonly renewal: {
    readonly refreshToken: string
    readonly tokenEndpoint: string
    readonly resource?: string
  }
}

type Answer = (request: Request) => Response | Promise<Response>

/** The account of the request's token. */
function nameIn(request: Request): Response {
  const [, token = ''] = (request.headers.get('authorization') ?? '').split(' ')
  if (token === '')
    return Response.json({ error: { code: 'unauthorized', message: 'Cannot authenticate' } }, { status: 401 })
  const { name, sub } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<
    string,
    string
  >
  return Response.json({ account: sub, name, scopes: ['connect'], via: 'bearer', expiresMs: null })
}

/** The user code that `login` prints. */
export function waitForUserCode(output: () => string): Promise<string> {
  return eventually(() => /Enter code {2}(\S+)/.exec(output())?.[1], { what: 'the user code' })
}

/** A home folder, a stand-in for control that accepts every token, and a relay in front of a real issuer. */
export class SignInFixture implements AsyncDisposable {
  readonly issuer: TestIssuer
  readonly relay: IssuerRelay
  readonly server: ReturnType<typeof Bun.serve>
  /** URL of the server to sign in to. */
  url: string
  /** Requests that the stand-in received. */
  readonly requests: { readonly what: string; readonly authorization: string | null }[] = []
  /** Responses by method and path; others are 404. */
  readonly answers: Record<string, Answer> = {
    'GET /api/auth': () => this.auth(),
    'GET /api/whoami': nameIn,
    'POST /api/signout': () => new Response(null, { status: 204 }),
  }
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where sign-ins are stored. */
  readonly folder: string
  readonly #home = mkdtempSync(join(tmpdir(), 'cli-sign-in-'))

  constructor(issuer: TestIssuer) {
    this.issuer = issuer
    this.relay = openIssuerRelay(issuer.url)
    issuer.metadata = this.relay.metadata
    this.server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: (request) => this.answer(request) })
    this.url = `http://127.0.0.1:${this.server.port}`
    this.folder = join(this.#home, 'sandwire', 'sign-ins')
    const absent = { SBX_URL: undefined, DISPLAY: undefined, npm_command: undefined }
    this.env = { XDG_CONFIG_HOME: this.#home, HOME: this.#home, ...absent }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.stop(true)
    this.relay.close()
    this.issuer.metadata = {}
    rmSync(this.#home, { recursive: true })
  }

  answer(request: Request): Response | Promise<Response> {
    const what = `${request.method} ${new URL(request.url).pathname}`
    this.requests.push({ what, authorization: request.headers.get('authorization') })
    return this.answers[what]?.(request) ?? new Response('none', { status: 404 })
  }

  /** The server's description of its issuer, with these changes. */
  auth(changes: Readonly<Record<string, unknown>> = {}): Response {
    const { audiences: _, algorithms: _a, defaultScopes: _d, ...known } = this.issuer.configFor()
    const issuer = { ...known, requestParameters: {}, ...changes }
    return Response.json({ mode: 'open', local: false, issuers: [issuer] })
  }

  /** Runs a command in this process. */
  cli(...argv: readonly string[]): Promise<CommandRun> {
    return runInProcess(argv, { env: this.env })
  }

  /** Starts the CLI in its own process. */
  start(...argv: readonly string[]) {
    return startCli([process.execPath, MAIN, ...argv], this.env)
  }

  /** Starts to sign in, in this process, and waits for the user code. */
  async beginLogin(...argv: readonly string[]) {
    const { stderr, interrupt, done } = startCommand(['login', this.url, ...argv], { env: this.env })
    return { code: await waitForUserCode(stderr), shown: stderr, interrupt, done: () => done }
  }

  /** Signs in, and confirms as this user if a code is shown. */
  async tryLogin(url: string, ...argv: readonly string[]): Promise<CommandRun> {
    const { stderr, done } = startCommand(['login', url, ...argv], { env: this.env })
    const code = await Promise.race([waitForUserCode(stderr), done.then(() => undefined)])
    if (code !== undefined) await this.issuer.approveDevice(code, 'ann')
    return done
  }

  async login(account = 'ann'): Promise<void> {
    const { code, done } = await this.beginLogin()
    await this.issuer.approveDevice(code, account)
    const run = await done()
    if (run.code !== 0) throw new Error(`Cannot sign in: ${run.stderr}`)
  }

  get isSignedIn(): boolean {
    try {
      return readdirSync(this.folder).some((name) => name.endsWith('.json'))
    } catch {
      // No sign-in is stored.
      return false
    }
  }

  get storedFile(): string {
    const [name, ...more] = readdirSync(this.folder).filter((each) => each.endsWith('.json'))
    if (name === undefined || more.length > 0) throw new Error('Expected exactly one sign-in')
    return join(this.folder, name)
  }

  get stored(): Stored {
    return JSON.parse(readFileSync(this.storedFile, 'utf8')) as Stored
  }

  /** Makes the stored token expire. */
  expire(expiresMs = 1): void {
    writeFileSync(this.storedFile, JSON.stringify({ ...this.stored, expiresMs }), { mode: 0o600 })
  }
}
