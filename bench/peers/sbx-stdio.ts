import { join, resolve } from 'node:path'
import type { Scratch } from '../scratch.ts'
import { createSandbox, findIsolationProblem, findWorkerd, openHost } from './control-plane.ts'
import { openProgramStream } from './program-stream.ts'
import type { Peer, Service } from './stream.ts'

const BUILD = resolve(import.meta.dir, '../../scripts/build.ts')

const SANDBOX = 'bench'

/** Compiles the programs as `npm run build` does; returns the path of sbx-stdio. */
export function buildSbxStdio({ directory }: Scratch): string {
  const folder = join(directory, 'dist')
  const build = Bun.spawnSync([process.execPath, BUILD, folder], { stdout: 'ignore', stderr: 'pipe' })
  if (!build.success) throw new Error(`Cannot build sbx-stdio: ${build.stderr.toString()}`)
  return join(folder, 'sbx-stdio')
}

/** The compiled CLI through control. */
export function createSbxStdio(program: string): Peer {
  return {
    name: 'sandwire sbx-stdio',
    problem: findIsolationProblem(),
    modes: ['pipe', 'pty'],
    serve: (argv, mode): Promise<Service> =>
      openHost(async (host) => {
        await createSandbox(host, SANDBOX)
        const connectVia = async (port: number) =>
          openProgramStream([
            program,
            `http://127.0.0.1:${port}/attach`,
            '--sandbox',
            SANDBOX,
            '--quiet',
            '--token-file',
            join(host.data, 'local-token'),
            '--escape',
            'none',
            mode === 'pty' ? '--tty' : '--no-tty',
            '--',
            ...argv,
          ])
        return {
          pid: findWorkerd(host),
          port: host.port,
          connect: () => connectVia(host.port),
          connectVia,
          [Symbol.asyncDispose]: host.stop,
        }
      }),
  }
}
