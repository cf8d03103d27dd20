import { basename, join } from 'node:path'
import { attach } from '@sandwire/client'
import type { RunningHost } from '../../test/e2e/support/control.ts'
import { createSandbox, findIsolationProblem, findWorkerd, openHost } from './control-plane.ts'
import { attachStream } from './sandwire.ts'
import type { Peer, Service } from './stream.ts'

const SANDBOX = 'bench'

/** A folder in memory, so that the disk is not measured. */
const FOLDER = '/tmp'

/** Copies a local file into the sandbox. */
async function upload(host: RunningHost, file: string, to: string): Promise<void> {
  const handle = attach({
    url: host.url,
    request: { sandbox: SANDBOX, cmd: 'sh', args: ['-c', 'cat > "$0"', to], mode: 'pipe' },
    credentials: async () => ({ headers: host.headers }),
    onOutput: () => {},
  })
  for await (const chunk of Bun.file(file).stream()) await handle.write(chunk)
  handle.eof()
  const { code } = await handle.exit
  if (code !== 0) throw new Error(`Cannot upload "${file}": exit code ${code}`)
}

/** Copies the files of a command into the sandbox; returns the command with their paths there. */
async function moveInside(
  host: RunningHost,
  argv: readonly string[],
  files: readonly string[],
): Promise<string[]> {
  let moved = [...argv]
  for (const file of files) {
    const inside = join(FOLDER, basename(file))
    await upload(host, file, inside)
    moved = moved.map((word) => word.replaceAll(file, inside))
  }
  return moved
}

/** The whole product: client library, control in workerd, sandboxd in bubblewrap. */
export const throughControl: Peer = {
  name: 'sandwire through control',
  get problem() {
    return findIsolationProblem()
  },
  modes: ['pipe', 'pty'],
  serve: (argv, mode, files = []): Promise<Service> =>
    openHost(async (host) => {
      await createSandbox(host, SANDBOX)
      const command = { argv: await moveInside(host, argv, files), mode }
      const place = { ...host, sandbox: SANDBOX }
      return {
        pid: findWorkerd(host),
        port: host.port,
        connect: () => attachStream(place, command),
        connectVia: (port) => attachStream(place, command, port),
        [Symbol.asyncDispose]: host.stop,
      }
    }),
}
