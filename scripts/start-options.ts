type Environment = Readonly<Record<string, string | undefined>>

export type StartOptions =
  | {
      readonly isOk: true
      readonly workspace: string
      /** Undefined: the usual one if it is free. */ readonly port: number | undefined
    }
  | { readonly isOk: false; readonly message: string }

const usualPort = 8080

/** Reads `--port N` and `PORT`, and where the caller stood: npm changes the folder before it runs a script. */
export function parseStart(argv: readonly string[], env: Environment, cwd: string): StartOptions {
  const text = /^--port(?:=(.*))?$/.exec(argv[0] ?? '')
  const given = text === null ? undefined : (text[1] ?? argv[1] ?? '')
  const used = text === null ? 0 : text[1] === undefined ? 2 : 1
  if (argv.length > used) return { isOk: false, message: `Unknown argument "${argv[used]}"` }
  const port = given ?? (env['PORT'] === '' ? undefined : env['PORT'])
  const workspace = env['INIT_CWD'] ?? cwd
  if (port === undefined) return { isOk: true, workspace, port: undefined }
  const number = /^[0-9]{1,5}$/.test(port) ? Number(port) : Number.NaN
  if (!(number <= 65_535))
    return { isOk: false, message: `The port must be a number from 0 to 65535, not "${port}"` }
  return { isOk: true, workspace, port: number }
}

async function isFree(port: number): Promise<boolean> {
  try {
    const server = Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response() })
    await server.stop(true)
    return true
  } catch {
    // Taken, or not ours to take.
    return false
  }
}

/** Where to listen; undefined when the port that was asked for is taken. */
export async function chooseAddress(port: number | undefined): Promise<string | undefined> {
  const wanted = port ?? usualPort
  if (wanted === 0 || (await isFree(wanted))) return `127.0.0.1:${wanted}`
  return port === undefined ? '127.0.0.1:0' : undefined
}

/** What a person should know of a line of sandboxd's log: errors, and whatever is not a log line at all. */
export function findTrouble(line: string): string | undefined {
  try {
    const entry: unknown = JSON.parse(line)
    if (typeof entry !== 'object' || entry === null || !('level' in entry) || entry.level !== 'error')
      return undefined
    const event = 'event' in entry ? String(entry.event) : 'error'
    return `sandboxd: ${event}${'message' in entry ? `: ${String(entry.message)}` : ''}`
  } catch {
    // A crash report, or the reason why it did not start.
    return line === '' ? undefined : line
  }
}
