import { chmod, copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { shellQuote } from '@sandwire/shell-quote'
import { openProgramStream } from './program-stream.ts'
import { findFreePort, spawnServer } from './spawned.ts'
import type { Peer, Service } from './stream.ts'

const SSHD = '/usr/sbin/sshd'

function findObstacle(): string | undefined {
  if (Bun.which(SSHD) === null) return 'sshd is not installed (apt-get install openssh-server)'
  return Bun.which('ssh') === null ? 'ssh is not installed (apt-get install openssh-client)' : undefined
}

function makeKey(file: string): void {
  const { success } = Bun.spawnSync(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', file])
  if (!success) throw new Error('Cannot make a key with ssh-keygen')
}

/** A server of our own on loopback: its keys, its configuration, nothing of the machine's. */
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
  // Where Debian's sshd separates its privileges; made by its service, which is not what we start.
  if (process.getuid?.() === 0) await mkdir('/run/sshd', { recursive: true })
  return spawnServer([SSHD, '-D', '-f', join(directory, 'sshd_config')], port)
}

/** Bun's `userInfo` reads `$USER`, which is not set everywhere. */
function findUserName(): string {
  return Bun.spawnSync(['id', '-un']).stdout.toString().trim()
}

/** A private sshd, and the command that logs in there. */
export interface SshServer extends AsyncDisposable {
  readonly pid: number
  readonly port: number
  /** Everything before the command to run there. */
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
  get obstacle() {
    return findObstacle()
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
