import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** A git server over smart HTTP, by git's own CGI program, that accepts one credential. */
export interface GitServer extends AsyncDisposable {
  readonly url: string
  /** `METHOD PATH` and the credential of each request. */
  readonly requests: { readonly line: string; readonly authorization: string | null }[]
  /** Refs of a repository. */
  refs(repository: string): string[]
  /** Runs git in a repository. */
  git(repository: string, ...args: string[]): string
}

function git(cwd: string, ...args: string[]): string {
  const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' }
  const { stdout, exitCode, stderr } = Bun.spawnSync(['git', ...args], { cwd, env })
  if (exitCode !== 0) throw new Error(`git ${args.join(' ')}: ${stderr.toString()}`)
  return stdout.toString()
}

/** Creates repositories with one commit on `main`. */
function createRepository(root: string, name: string): void {
  const work = path.join(root, 'work')
  git(root, 'init', '-q', '-b', 'main', work)
  git(work, '-c', 'user.name=t', '-c', 'user.email=t@t', 'commit', '-q', '--allow-empty', '-m', 'first')
  git(root, 'clone', '-q', '--bare', work, path.join(root, `${name}.git`))
  git(path.join(root, `${name}.git`), 'config', 'http.receivepack', 'true')
  rmSync(work, { recursive: true })
}

/** Splits the answer of a CGI program. */
function toResponse(output: Uint8Array): Response {
  const end = Buffer.from(output).indexOf('\r\n\r\n')
  const headers = new Headers()
  let status = 200
  for (const line of Buffer.from(output).subarray(0, end).toString().split('\r\n')) {
    const [name = '', value = ''] = line.split(/: ?(.*)/)
    if (name.toLowerCase() === 'status') status = Number.parseInt(value, 10)
    else headers.set(name, value)
  }
  return new Response(output.slice(end + 4), { status, headers })
}

export function openGitServer(repositories: readonly string[], credential: string): GitServer {
  const root = mkdtempSync(path.join(tmpdir(), 'sandwire-git-'))
  for (const name of repositories) createRepository(root, name)
  const requests: { line: string; authorization: string | null }[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: async (request) => {
      const url = new URL(request.url)
      const authorization = request.headers.get('authorization')
      requests.push({ line: `${request.method} ${url.pathname}${url.search}`, authorization })
      if (url.pathname.startsWith('/moved.git')) return Response.redirect('http://127.0.0.1:1/', 301)
      if (authorization !== `Basic ${btoa(credential)}`) return new Response(null, { status: 401 })
      const child = Bun.spawn(['git', 'http-backend'], {
        stdin: await request.bytes(),
        stdout: 'pipe',
        stderr: 'ignore',
        env: {
          PATH: process.env['PATH'],
          GIT_PROJECT_ROOT: root,
          GIT_HTTP_EXPORT_ALL: '1',
          GIT_CONFIG_GLOBAL: '/dev/null',
          REMOTE_USER: 'agent',
          REQUEST_METHOD: request.method,
          PATH_INFO: url.pathname,
          QUERY_STRING: url.search.slice(1),
          CONTENT_TYPE: request.headers.get('content-type') ?? '',
          HTTP_CONTENT_ENCODING: request.headers.get('content-encoding') ?? '',
          GIT_PROTOCOL: request.headers.get('git-protocol') ?? '',
        },
      })
      return toResponse(await new Response(child.stdout).bytes())
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    refs: (repository) =>
      git(path.join(root, `${repository}.git`), 'for-each-ref', '--format=%(refname)')
        .trim()
        .split('\n'),
    git: (repository, ...args) => git(path.join(root, `${repository}.git`), ...args),
    async [Symbol.asyncDispose]() {
      await server.stop(true)
      rmSync(root, { recursive: true })
    },
  }
}
