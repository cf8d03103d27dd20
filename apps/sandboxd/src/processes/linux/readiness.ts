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
/** Most descriptors reported per turn; the others follow in the next. */
const BATCH = 64

const IOCB_BYTES = 64
const IOCB_OPCODE_AT = 16
const IOCB_FD_AT = 20
const IOCB_EVENTS_AT = 24
const IOCB_FLAGS_AT = 56
const IOCB_EVENT_FD_AT = 60
const IOCB_CMD_POLL = 5
const IOCB_FLAG_RESFD = 1

/** Completed requests that stay in the kernel's queue before they are collected. */
const MAX_COMPLETED = 64

/** Poll interval where asynchronous requests are not available. */
const POLL_MS = 4

/**
 * Reports when descriptors are readable, without reading them. Bun has no call for that: its streams read everything
 * available, and ahead. All descriptors are in one epoll set; a request of the kernel's asynchronous I/O waits for the set and
 * increments an eventfd, which Bun reads. (An asynchronous request cannot wait for a terminal itself.)
 */
export class Readiness {
  readonly #listeners = new Map<number, () => void>()
  readonly #epollFd: number
  readonly #event = new Uint8Array(EPOLL_EVENT_BYTES)
  readonly #eventView = new DataView(this.#event.buffer)
  readonly #ready = new Uint8Array(BATCH * EPOLL_EVENT_BYTES)
  readonly #readyView = new DataView(this.#ready.buffer)
  /** Undefined where the kernel has no asynchronous requests; then a timer polls. */
  readonly #notifier: EpollNotifier | undefined
  /** Polls while there are listeners and no notifier. */
  #timer: Timer | undefined

  private constructor(epollFd: number, canUseAio: boolean) {
    this.#epollFd = epollFd
    this.#notifier = canUseAio ? EpollNotifier.open(epollFd, () => this.#notify()) : undefined
  }

  /** Undefined when the process is out of descriptors. */
  static open({ canUseAio }: { readonly canUseAio: boolean } = { canUseAio: true }): Readiness | undefined {
    const epollFd = createEpoll()
    return epollFd < 0 ? undefined : new Readiness(epollFd, canUseAio)
  }

  /** Calls `listener` once per turn of the event loop while `fd` is readable or has hung up. */
  watch(fd: number, listener: () => void): void {
    this.#control(EPOLL_CTL_ADD, fd, EPOLLIN)
    this.#listeners.set(fd, listener)
    if (this.#notifier === undefined) this.#timer ??= setInterval(() => this.#notify(), POLL_MS)
  }

  /** Must be called before the descriptor is closed. */
  unwatch(fd: number): void {
    if (!this.#listeners.delete(fd)) return
    this.#control(EPOLL_CTL_DEL, fd, 0)
    if (this.#listeners.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Suspends events of `fd` until `release`, while its owner polls it. */
  hold(fd: number): void {
    if (this.#listeners.has(fd)) this.#control(EPOLL_CTL_MOD, fd, 0)
  }

  /** Resumes events of `fd`; data that arrived meanwhile is reported now. */
  release(fd: number): void {
    if (this.#listeners.has(fd)) this.#control(EPOLL_CTL_MOD, fd, EPOLLIN)
  }

  #control(operation: number, fd: number, events: number): void {
    this.#eventView.setUint32(0, events, true)
    this.#eventView.setUint32(EPOLL_DATA_AT, fd, true)
    controlEpoll(this.#epollFd, operation, fd, this.#event)
  }

  #notify(): void {
    const count = takeEpollEvents(this.#epollFd, this.#ready, BATCH)
    for (let index = 0; index < count; index += 1) {
      // An earlier listener may have removed this one.
      this.#listeners.get(this.#readyView.getUint32(index * EPOLL_EVENT_BYTES + EPOLL_DATA_AT, true))?.()
    }
  }
}

/** Calls back, in a turn of its own, whenever an epoll set has a ready descriptor. */
class EpollNotifier {
  readonly #context: bigint
  /** The request, and the list of one element that the kernel expects; neither may move in memory. */
  readonly #request: Uint8Array
  readonly #requests: BigUint64Array
  readonly #completed = new Uint8Array(MAX_COMPLETED * AIO_EVENT_BYTES)
  #completedCount = 0
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #onReady: () => void

  private constructor(parts: { context: bigint; epollFd: number; eventFd: number; onReady: () => void }) {
    this.#context = parts.context
    this.#onReady = parts.onReady
    this.#request = pollRequest(parts.epollFd, parts.eventFd)
    this.#requests = new BigUint64Array([BigInt(ptr(this.#request))])
    this.#reader = Bun.file(parts.eventFd).stream().getReader()
  }

  /** Undefined where the kernel or a seccomp filter refuses such requests. */
  static open(epollFd: number, onReady: () => void): EpollNotifier | undefined {
    const context = new BigUint64Array(1)
    if (setUpAio(2 * MAX_COMPLETED, context) < 0) return undefined
    const eventFd = createEventFd()
    if (eventFd < 0) return undefined
    const notifier = new EpollNotifier({ context: context[0] ?? 0n, epollFd, eventFd, onReady })
    if (notifier.#arm()) {
      notifier.#await()
      return notifier
    }
    void notifier.#reader.cancel().then(() => closeFd(eventFd))
    return undefined
  }

  #arm(): boolean {
    return submitAio(this.#context, this.#requests) === 1
  }

  #await(): void {
    void this.#reader.read().then(this.#fired)
  }

  readonly #fired = (): void => {
    this.#completedCount += 1
    if (this.#completedCount >= MAX_COMPLETED)
      this.#completedCount -= Math.max(0, takeAioEvents(this.#context, this.#completed))
    try {
      this.#onReady()
    } finally {
      // After the listeners, so that data they have read is not reported again.
      if (this.#arm()) this.#await()
      else setTimeout(this.#fired, POLL_MS)
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
