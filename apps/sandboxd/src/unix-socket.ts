import { lstatSync, unlinkSync } from 'node:fs'
import { connect } from 'node:net'

/** True when a server answers on the socket. */
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

/** Makes way for a new socket: one left by an earlier run is removed. Returns why that cannot be done, if it cannot. */
export async function clearSocketPath(path: string): Promise<string | undefined> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return undefined
  if (!found.isSocket()) return 'it exists and is not a socket'
  if (await isServed(path)) return 'another server listens there'
  unlinkSync(path)
  return undefined
}

/** Runs `listen` so that only this user can connect to the socket it makes. */
export function listenPrivately<T>(listen: () => T): T {
  const before = process.umask(0o177)
  try {
    return listen()
  } finally {
    process.umask(before)
  }
}
