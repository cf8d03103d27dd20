import { lstatSync, unlinkSync } from 'node:fs'
import { connect } from 'node:net'

/** True when a server accepts connections on the socket. */
function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** Removes a socket that an earlier run left. Returns the problem when the path is not free. */
export async function clearSocketPath(path: string): Promise<string | undefined> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return undefined
  if (!found.isSocket()) return 'the path exists and is not a socket'
  if (await isServed(path)) return 'another server is listening on it'
  unlinkSync(path)
  return undefined
}

/** Runs `listen` with a umask that lets only this user connect to its socket. */
export function listenPrivately<T>(listen: () => T): T {
  const before = process.umask(0o177)
  try {
    return listen()
  } finally {
    process.umask(before)
  }
}
