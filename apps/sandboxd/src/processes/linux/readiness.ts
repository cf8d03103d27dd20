import { ptr } from 'bun:ffi'
import {
  AIO_EVENT_BYTES,
  closeFd,
  controlEpoll,
  createEpoll,
  createEventFd,
  setUpAio,
  submitAio,
  takeAioEvents,
  takeEpollEvents,
} from './libc.ts'

const EPOLLIN = 1
const EPOLL_CTL_ADD = 1
const EPOLL_CTL_DEL = 2
const EPOLL_CTL_MOD = 3
/** `struct epoll_event` is packed on x86-64 only. */
const EPOLL_EVENT_BYTES = process.arch === 'x64' ? 12 : 16
const EPOLL_DATA_AT = process.arch === 'x64' ? 4 : 8
/** Descriptors told per turn; the others are told in the next. */
const BATCH = 64

const IOCB_BYTES = 64
const IOCB_OPCODE_AT = 16
const IOCB_FD_AT = 20
const IOCB_EVENTS_AT = 24
const IOCB_FLAGS_AT = 56
const IOCB_EVENT_FD_AT = 60
const IOCB_CMD_POLL = 5
const IOCB_FLAG_RESFD = 1

/** Finished requests that the kernel is let keep before they are taken, as each must be. */
const MAX_FINISHED = 64

/** How often descriptors are looked at where the kernel cannot tell Bun. */
const LOOK_MS = 4

/**
 * Tells when descriptors can be read, without reading them, which Bun has nothing for: its streams read as much as they
 * find, and ahead. All descriptors are in one epoll set; a request of the kernel's asynchronous I/O waits for the set and
 * counts up an eventfd; that is what Bun reads. (An asynchronous request cannot wait for a terminal itself.)
 */
export class Readiness {
  readonly #listeners = new Map<number, () => void>()
  readonly #epollFd: number
  readonly #event = new Uint8Array(EPOLL_EVENT_BYTES)
  readonly #eventView = new DataView(this.#event.buffer)
  readonly #ready = new Uint8Array(BATCH * EPOLL_EVENT_BYTES)
  readonly #readyView = new DataView(this.#ready.buffer)
  /** Undefined where the kernel has none; then a timer looks. */
  readonly #alarm: Alarm | undefined
  /** Set where there is no alarm, while somebody listens. */
  #timer: Timer | undefined

  private constructor(epollFd: number, canUseAio: boolean) {
    this.#epollFd = epollFd
    this.#alarm = canUseAio ? Alarm.open(epollFd, () => this.#tell()) : undefined
  }

  /** Undefined when there is no descriptor left for it. */
  static open({ canUseAio }: { readonly canUseAio: boolean } = { canUseAio: true }): Readiness | undefined {
    const epollFd = createEpoll()
    return epollFd < 0 ? undefined : new Readiness(epollFd, canUseAio)
  }

  /** Calls `listener` once per turn of the event loop while `fd` can be read or has hung up. */
  watch(fd: number, listener: () => void): void {
    this.#control(EPOLL_CTL_ADD, fd, EPOLLIN)
    this.#listeners.set(fd, listener)
    if (this.#alarm === undefined) this.#timer ??= setInterval(() => this.#tell(), LOOK_MS)
  }

  /** Before the descriptor is closed. */
  unwatch(fd: number): void {
    if (!this.#listeners.delete(fd)) return
    this.#control(EPOLL_CTL_DEL, fd, 0)
    if (this.#listeners.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Says nothing of `fd` until `release`: its owner looks by itself. */
  hold(fd: number): void {
    if (this.#listeners.has(fd)) this.#control(EPOLL_CTL_MOD, fd, 0)
  }

  /** What came while it was held is told now. */
  release(fd: number): void {
    if (this.#listeners.has(fd)) this.#control(EPOLL_CTL_MOD, fd, EPOLLIN)
  }

  #control(operation: number, fd: number, events: number): void {
    this.#eventView.setUint32(0, events, true)
    this.#eventView.setUint32(EPOLL_DATA_AT, fd, true)
    controlEpoll(this.#epollFd, operation, fd, this.#event)
  }

  #tell(): void {
    const count = takeEpollEvents(this.#epollFd, this.#ready, BATCH)
    for (let index = 0; index < count; index += 1) {
      // Whoever was told before may have ended this one.
      this.#listeners.get(this.#readyView.getUint32(index * EPOLL_EVENT_BYTES + EPOLL_DATA_AT, true))?.()
    }
  }
}

/** Calls back, in a turn of its own, whenever an epoll set has something ready. */
class Alarm {
  readonly #context: bigint
  /** The request, and the list of one that the kernel wants; both stay where they are. */
  readonly #request: Uint8Array
  readonly #requests: BigUint64Array
  readonly #finished = new Uint8Array(MAX_FINISHED * AIO_EVENT_BYTES)
  #finishedCount = 0
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #ring: () => void

  private constructor(parts: { context: bigint; epollFd: number; eventFd: number; ring: () => void }) {
    this.#context = parts.context
    this.#ring = parts.ring
    this.#request = pollRequest(parts.epollFd, parts.eventFd)
    this.#requests = new BigUint64Array([BigInt(ptr(this.#request))])
    this.#reader = Bun.file(parts.eventFd).stream().getReader()
  }

  /** Undefined where the kernel or a filter of system calls has no such requests. */
  static open(epollFd: number, ring: () => void): Alarm | undefined {
    const context = new BigUint64Array(1)
    if (setUpAio(2 * MAX_FINISHED, context) < 0) return undefined
    const eventFd = createEventFd()
    if (eventFd < 0) return undefined
    const alarm = new Alarm({ context: context[0] ?? 0n, epollFd, eventFd, ring })
    if (alarm.#arm()) {
      alarm.#await()
      return alarm
    }
    void alarm.#reader.cancel().then(() => closeFd(eventFd))
    return undefined
  }

  #arm(): boolean {
    return submitAio(this.#context, this.#requests) === 1
  }

  #await(): void {
    void this.#reader.read().then(this.#rang)
  }

  readonly #rang = (): void => {
    this.#finishedCount += 1
    if (this.#finishedCount >= MAX_FINISHED)
      this.#finishedCount -= Math.max(0, takeAioEvents(this.#context, this.#finished))
    try {
      this.#ring()
    } finally {
      // Behind the listeners, so that what they have taken does not ring again.
      if (this.#arm()) this.#await()
      else setTimeout(this.#rang, LOOK_MS)
    }
  }
}

function pollRequest(fd: number, eventFd: number): Uint8Array {
  const request = new Uint8Array(IOCB_BYTES)
  const view = new DataView(request.buffer)
  view.setUint16(IOCB_OPCODE_AT, IOCB_CMD_POLL, true)
  view.setUint32(IOCB_FD_AT, fd, true)
  view.setBigUint64(IOCB_EVENTS_AT, BigInt(EPOLLIN), true)
  view.setUint32(IOCB_FLAGS_AT, IOCB_FLAG_RESFD, true)
  view.setUint32(IOCB_EVENT_FD_AT, eventFd, true)
  return request
}
