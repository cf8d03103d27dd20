import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToBytes, SandwireError } from '@sandwire/protocol'
import { BEARER } from '../../caller.ts'
import { respondError } from '../../http/respond.ts'
import { INHERIT_OOM_SCORE } from '../../processes/tree/oom-score.ts'
import { ProcessScanner } from '../../processes/tree/process-scanner.ts'
import { SAME_USER } from '../../processes/run-as.ts'
import type { Files } from '../files.ts'
import { respondCompatError } from '../../compat/responses.ts'
import { GIT_HANDLERS as COMPAT_GIT_HANDLERS } from '../../compat/git-routes.ts'
import { COMPAT_PREFIX } from '../../compat/routes.ts'
import { GIT_HANDLERS, type GitDeps } from '../routes/git-routes.ts'
import type { WorkspaceHandler } from '../routes/route.ts'
import type { GitLocks } from './git-locks.ts'
import { GitScratch } from './private-config.ts'
import { createRunTool, type RunTool, type ToolPlan } from '../tool.ts'
import { FilesThread } from '../thread/files-thread.ts'

/** A workspace in a temporary folder, with the real git and its own HOME. */
export interface Fixture extends Disposable {
  readonly root: string
  readonly home: string
  readonly files: Files
  readonly runTool: RunTool
  readonly gitScratch: GitScratch
  readonly gitLocks: GitLocks
  /** Runs git as a user would, with the repository's configuration; throws when it fails. */
  readonly git: (...args: readonly string[]) => string
  readonly gitIn: (folder: string, ...args: readonly string[]) => string
  /** The absolute path of a file, with any bytes. */
  readonly pathOf: (path: string) => Buffer
  write(path: string, content: string | Uint8Array): void
  /** Requests a route; errors are responses, as over HTTP. */
  get(route: string, search?: string): Promise<Answer>
  post(route: string, body: unknown): Promise<Answer>
}

export interface Answer {
  readonly status: number
  readonly body: unknown
}

const GIT_CONFIG = `[user]
  name = Someone
  email = someone@example.test
[init]
  defaultBranch = main
[protocol "file"]
  allow = always
`

interface FixtureOptions {
  readonly isRepository?: boolean
  /** Parent of the temporary folder. */
  readonly parent?: string
  /** Removes a protection from a command line, to prove that it is needed. */
  readonly spoil?: (plan: ToolPlan) => ToolPlan
  /** Whether another git runs. */
  readonly hasGit?: boolean
}

export function createFixture({
  isRepository = true,
  parent = tmpdir(),
  hasGit = false,
  spoil,
}: FixtureOptions = {}): Fixture {
  const top = realpathSync(mkdtempSync(join(parent, 'git-fixture-')))
  const [root, home] = [join(top, 'work'), join(top, 'home')]
  for (const folder of [root, home]) mkdirSync(folder)
  writeFileSync(join(home, '.gitconfig'), GIT_CONFIG)
  const env = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: home, LANG: 'C.UTF-8' }
  const gitIn = (folder: string, ...args: readonly string[]): string => {
    const ran = Bun.spawnSync(['git', ...args], { cwd: join(root, folder), env })
    if (!ran.success) throw new Error(`git ${args.join(' ')}: ${ran.stderr.toString()}`)
    return ran.stdout.toString()
  }
  const pathOf = (path: string): Buffer => pathIn(root, path)
  const files = new FilesThread({
    createWorker: () => new Worker(new URL('../thread/files-worker.ts', import.meta.url).href),
    setUp: { root, umask: 0o022, user: undefined },
  })
  const user = SAME_USER
  const now = (): number => performance.now()
  const run = createRunTool({
    baseEnv: env,
    user,
    children: new Set(),
    scanner: new ProcessScanner(),
    withOomScore: INHERIT_OOM_SCORE,
    now,
  })
  const runTool: RunTool = (plan) => run(spoil?.(plan) ?? plan)
  const gitLocks: GitLocks = { hasProcess: async () => hasGit, wallClock: Date.now }
  const gitScratch = new GitScratch(top)
  const handle = (request: Request): Promise<Answer> =>
    serve(request, { root, files, runTool, gitScratch, gitLocks })
  if (isRepository) gitIn('.', 'init', '--quiet')
  return {
    root,
    home,
    files,
    runTool,
    gitScratch,
    gitLocks,
    pathOf,
    gitIn,
    git: (...args) => gitIn('.', ...args),
    write: (path, content) => {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(pathOf(path), content)
    },
    get: (route, search = '') => handle(new Request(`http://localhost/workspace/${route}${search}`)),
    post: (route, body) =>
      handle(
        new Request(`http://localhost/workspace/${route}`, {
          method: 'POST',
          body: JSON.stringify(body),
        }),
      ),
    [Symbol.dispose]: () => {
      files.stop()
      rmSync(top, { recursive: true })
    },
  }
}

function pathIn(root: string, path: string): Buffer {
  return Buffer.concat([Buffer.from(`${root}/`), pathToBytes(path) ?? Buffer.alloc(0)])
}

const HANDLERS: Readonly<Record<string, WorkspaceHandler<GitDeps['workspace']>>> = {
  ...GIT_HANDLERS,
  ...COMPAT_GIT_HANDLERS,
}

async function serve(request: Request, workspace: GitDeps['workspace']): Promise<Answer> {
  const url = new URL(request.url)
  const handle = HANDLERS[`${request.method} ${url.pathname}`]
  if (handle === undefined) throw new Error(`no route ${url.pathname}`)
  const call = { request, url, caller: BEARER, requestId: 'r', id: '' }
  let response: Response
  try {
    response = await handle(call, { workspace })
  } catch (caught) {
    const respond = url.pathname.startsWith(COMPAT_PREFIX) ? respondCompatError : respondError
    response = respond(SandwireError.from(caught), 'r')
  }
  return { status: response.status, body: await response.json() }
}
