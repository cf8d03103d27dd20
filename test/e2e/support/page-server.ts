import { findFreePort } from './free-port.ts'
import { readLines } from './lines.ts'

const MAIN = new URL('../../../apps/sandboxd/src/main.ts', import.meta.url).pathname

/** A page with one script, and an unauthenticated sandboxd that allows its origin. */
export interface PageServer extends AsyncDisposable {
  readonly pageUrl: string
  /** URL of sandboxd. */
  readonly url: string
  /** Processes started so far. */
  countCreated(): Promise<number>
  /** Processes ended so far. */
  countEnded(): Promise<number>
}

/** Builds a script in development mode and serves it. */
export async function servePage(entry: string): Promise<PageServer> {
  const built = await Bun.build({
    entrypoints: [entry],
    target: 'browser',
    define: { 'process.env.NODE_ENV': '"development"' },
  })
  const files = new Map(built.outputs.map((output) => [output.path.replace(/^.*\.(?=\w+$)/, ''), output]))
  const html = '<!doctype html><link rel=stylesheet href=/page.css><body><script src=/page.js></script>'
  const pages = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url }) => {
      const file = files.get(new URL(url).pathname.split('.')[1] ?? '')
      return file === undefined
        ? new Response(html, { headers: { 'content-type': 'text/html' } })
        : new Response(file)
    },
  })
  const port = findFreePort()
  const origin = `http://127.0.0.1:${pages.port}`
  const argv = ['--listen', `127.0.0.1:${port}`, '--workspace', '/tmp', '--insecure', '--origin', origin]
  const sandboxd = Bun.spawn([process.execPath, MAIN, ...argv], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  })
  await readLines(sandboxd.stdout).next()
  const url = `http://127.0.0.1:${port}`
  const readMetric = async (name: string): Promise<number> => {
    const metrics = await (await fetch(`${url}/metrics`)).text()
    const found = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)$`, 'm').exec(metrics)?.[1]
    if (found === undefined) throw new Error(`There is no ${name} in\n${metrics}`)
    return Number(found)
  }
  return {
    pageUrl: `${origin}/`,
    url,
    countCreated: () => readMetric('sandwire_sessions_created_total'),
    countEnded: () => readMetric('sandwire_processes_ended_total'),
    async [Symbol.asyncDispose]() {
      sandboxd.kill()
      await sandboxd.exited
      await pages.stop(true)
    },
  }
}
