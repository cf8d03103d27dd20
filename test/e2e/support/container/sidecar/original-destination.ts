import { dlopen, FFIType, ptr } from 'bun:ffi'
import type { Socket } from 'node:net'

const SOL_IP = 0
const SO_ORIGINAL_DST = 80
const SOCKADDR_BYTES = 16

const libc = dlopen('libc.so.6', {
  getsockopt: {
    args: [FFIType.i32, FFIType.i32, FFIType.i32, FFIType.ptr, FFIType.ptr],
    returns: FFIType.i32,
  },
})

/** Where a redirected connection was meant to go, as `IP:PORT`; undefined when it was not redirected. */
export function readOriginalDestination(socket: Socket): string | undefined {
  const handle: unknown = Reflect.get(socket, '_handle')
  const fd: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'fd') : undefined
  if (typeof fd !== 'number') return undefined
  const address = Buffer.alloc(SOCKADDR_BYTES)
  const length = new Uint32Array([SOCKADDR_BYTES])
  if (libc.symbols.getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, ptr(address), ptr(length)) !== 0) return undefined
  const ip = [...address.subarray(4, 8)].join('.')
  return ip.startsWith('127.') ? undefined : `${ip}:${address.readUInt16BE(2)}`
}
