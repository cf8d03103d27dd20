import { chmod, copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { shellQuote } from '@sandwire/shell-quote'
import { openProgramStream } from './program-stream.ts'
import { findFreePort, spawnServer } from './spawned.ts'
import type { Peer, Service } from './stream.ts'

const SSHD = '/usr/sbin/sshd'

function findProblem(): string | undefined {
  if (Bun.which(SSHD) === null) return 'sshd is not installed (apt-get install openssh-server)'
  return Bun.which('ssh') === null ? 'ssh is not installed (apt-get install openssh-client)' : undefined
}

function makeKey(file: string): void {
  const { success } = Bun.spawnSync(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', file])
  if (!success) throw new Error('Cannot make a key with ssh-keygen')
}

/** Starts a private sshd on loopback with its own keys and configuration. */
async function startSshd(directory: string, port: number) {
  makeKey(join(directory, 'host'))
  makeKey(join(directory, 'user'))
  await copyFile(join(directory, 'user.pub'), join(directory, 'authorized'))
  const config = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${join(directory, 'host')}`,
    `AuthorizedKeysFile ${join(directory, 'authorized')}`,
    'PidFile none',
    'StrictModes no',
    'UsePAM no',
    'PermitRootLogin yes',
    'PasswordAuthentication no',
    'UseDNS no',
    'MaxStartups 200',
    'PrintMotd no',
    'PrintLastLog no',
  ]
  await writeFile(join(directory, 'sshd_config'), `${config.join('\n')}\n`)
  // Debian's sshd needs this folder for privilege separation; its service, which does not run here, would create it.
  if (process.getuid?.() === 0) await mkdir('/run/sshd', { recursive: true })
  return spawnServer([SSHD, '-D', '-f', join(directory, 'sshd_config')], port)
}

/** Bun's `userInfo` reads `$USER`, which is not set everywhere. */
function findUserName(): string {
  return Bun.spawnSync(['id', '-un']).stdout.toString().trim()
}

/** A private sshd and the ssh command that logs in to it. */
export interface SshServer extends AsyncDisposable {
  readonly pid: number
  readonly port: number
  /** The ssh command line up to the remote command. */
  readonly argv: (port?: number) => readonly string[]
}

export async function openSshServer(): Promise<SshServer> {
  const directory = await mkdtemp(join(tmpdir(), 'sandwire-sshd-'))
  await chmod(directory, 0o700)
  const port = findFreePort()
  const server = await startSshd(directory, port)
  const options = [
    'BatchMode=yes',
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'IdentitiesOnly=yes',
    'LogLevel=ERROR',
    'Compression=no',
  ].flatMap((option) => ['-o', option])
  return {
    pid: server.pid,
    port,
    argv: (through = port) => [
      'ssh',
      '-F',
      'none',
      '-i',
      join(directory, 'user'),
      ...options,
      '-e',
      'none',
      '-p',
      String(through),
      `${findUserName()}@127.0.0.1`,
    ],
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** OpenSSH against a private sshd; a pipe is `ssh -T`, a terminal `ssh -tt`. */
export const ssh: Peer = {
  name: 'ssh',
  get problem() {
    return findProblem()
  },
  modes: ['pipe', 'pty'],
  serve: async (argv, mode): Promise<Service> => {
    const server = await openSshServer()
    const connectVia = async (through: number) => {
      const [program = 'ssh', ...args] = server.argv(through)
      return openProgramStream([
        program,
        mode === 'pty' ? '-tt' : '-T',
        ...args,
        argv.map(shellQuote).join(' '),
      ])
    }
    return {
      pid: server.pid,
      port: server.port,
      connect: () => connectVia(server.port),
      connectVia,
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  },
}
