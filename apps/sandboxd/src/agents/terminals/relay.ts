import { connect } from 'node:net'

/** First argument of the program that agents start as tool server. */
export const RELAY_COMMAND = 'mcp-terminals'

/** Connects stdin and stdout to the socket of a run's terminals, until either side ends. Returns the exit code. */
export function relay(socketPath: string): Promise<number> {
  return new Promise((resolve) => {
    const socket = connect(socketPath)
    socket.once('error', (error) => {
      process.stderr.write(`sandboxd: cannot reach the terminals of the run: ${error.message}\n`)
      resolve(1)
    })
    socket.once('close', () => resolve(0))
    // The agent is gone.
    process.stdout.on('error', () => socket.destroy())
    process.stdin.pipe(socket)
    socket.pipe(process.stdout)
  })
}

/** The relay starts in the workspace, whose settings for Bun could preload code and write to its stdout. */
const WITHOUT_PROJECT = ['--no-env-file', '--config=/dev/null']

/** The command line of this program as relay: of its executable, or of Bun with its source or bundle. */
export function relayArgv(socketPath: string): readonly [string, ...string[]] {
  const isCompiled = Bun.main.startsWith('/$bunfs/')
  return isCompiled
    ? [process.execPath, RELAY_COMMAND, socketPath]
    : [process.execPath, ...WITHOUT_PROJECT, Bun.main, RELAY_COMMAND, socketPath]
}
