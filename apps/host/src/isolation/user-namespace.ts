import { closeSync, openSync, writeFileSync } from 'node:fs'
import type { SandboxIds } from './sandbox-folders.ts'
import { SYSTEM_ENV } from './system-tools.ts'

/** A user namespace; it exists while the descriptor is open or a process is in it. */
export interface UserNamespace extends Disposable {
  readonly fd: number
}

/** Prints a line when it is in the namespace, then forbids nested namespaces, then waits. */
const HOLDER = 'echo; read -r _; echo 0 > /proc/sys/user/max_user_namespaces; echo; read -r _'

/**
 * Creates a user namespace with two users: 0, which is `ids.daemon` outside and owns it, and 1000, which is `ids.user`.
 * Only root can write such a map; the process that holds the namespace meanwhile is not root.
 */
export async function openUserNamespace(ids: SandboxIds): Promise<UserNamespace> {
  const owner = String(ids.daemon)
  const become = [
    'setpriv',
    '--pdeathsig',
    'KILL',
    '--reuid',
    owner,
    '--regid',
    owner,
    '--clear-groups',
    '--',
  ]
  const holder = Bun.spawn([...become, 'unshare', '--user', '--keep-caps', 'sh', '-c', HOLDER], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'ignore',
    env: SYSTEM_ENV,
  })
  const answers = holder.stdout.getReader()
  const awaitAnswer = async (): Promise<void> => {
    if ((await answers.read()).done) throw new Error('Cannot create a user namespace: the kernel refused')
  }
  try {
    await awaitAnswer()
    const map = `0 ${ids.daemon} 1\n1000 ${ids.user} 1\n`
    writeFileSync(`/proc/${holder.pid}/uid_map`, map)
    writeFileSync(`/proc/${holder.pid}/gid_map`, map)
    const fd = openSync(`/proc/${holder.pid}/ns/user`, 'r')
    await holder.stdin.write('\n')
    await holder.stdin.flush()
    await awaitAnswer()
    return { fd, [Symbol.dispose]: () => closeSync(fd) }
  } finally {
    holder.kill('SIGKILL')
    await holder.exited
  }
}
