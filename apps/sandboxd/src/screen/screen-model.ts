import type { ServerSession, Snapshot } from '@sandwire/protocol'
import type { RemoteScreen, ScreenRenderer } from './screen-renderer.ts'

/** Most bytes posted to the renderer and not yet parsed; a program that writes faster overtakes the renderer. */
const MAX_IN_FLIGHT_BYTES = 2 * 1024 * 1024

/**
 * The screen of one terminal session, built only when needed: on request from the log, or by feeding bytes to the renderer
 * before the log drops them. Sessions whose whole output is in the log cost nothing.
 */
export class ScreenModel {
  readonly #session: ServerSession
  readonly #renderer: ScreenRenderer
  #screen: RemoteScreen | undefined
  /** Output up to here was given to the screen. */
  #fed = 0
  #inFlight = 0
  /** The log dropped bytes that were never fed. From then on screens are rendered from the log's content on request. */
  #isOvertaken = false
  /** Serial number of the last resize sent to the screen; a later one may have an offset that was already fed. */
  #resizeSerial = 0
  /** Pending render requests. */
  #rendering = 0

  constructor(session: ServerSession, renderer: ScreenRenderer) {
    this.#session = session
    this.#renderer = renderer
  }

  /** Called after output was logged: feeds bytes that the log is about to drop. */
  outputArrived(): void {
    const { log } = this.#session
    if (this.#isOvertaken || log.end - this.#rendered < log.limitBytes >> 1) return
    if (this.#inFlight < MAX_IN_FLIGHT_BYTES) {
      this.#feed()
      return
    }
    // The renderer cannot keep up, so parsing would only slow the program down.
    this.#isOvertaken = true
    this.#close()
  }

  /** The screen at the end of the log. */
  async render(): Promise<Snapshot> {
    const screen = this.#feed()
    const at = this.#fed
    const isExact = !this.#isOvertaken
    const { cols, rows } = this.#session.resizes.sizeAt(at)
    this.#rendering += 1
    const drawn = await screen.render()
    this.#rendering -= 1
    // The log can rebuild the screen when it is needed again.
    const isRebuildable = this.#session.log.start === 0 || this.#isOvertaken
    if (isRebuildable && this.#rendering === 0) this.#close()
    if (drawn === undefined) return { at, cols, rows, data: new Uint8Array(0), exact: false }
    return { at, cols, rows, data: drawn.bytes, parts: drawn.parts, exact: isExact }
  }

  dispose(): void {
    this.#close()
  }

  /** Output up to here is on the screen. */
  get #rendered(): number {
    return this.#screen === undefined || this.#screen.isClosed ? 0 : this.#fed
  }

  #close(): void {
    this.#screen?.close()
    this.#screen = undefined
  }

  /** Opens an empty screen. */
  #open(): RemoteScreen {
    const { serial, cols, rows } = this.#session.resizes.sizeAt(0)
    this.#resizeSerial = serial
    this.#fed = 0
    return this.#renderer.open(cols, rows)
  }

  /** Feeds the screen everything new in the log. */
  #feed(): RemoteScreen {
    const { log, resizes } = this.#session
    const screen = this.#screen === undefined || this.#screen.isClosed ? this.#open() : this.#screen
    this.#screen = screen
    if (this.#fed < log.start) {
      this.#isOvertaken = true
      this.#fed = log.start
    }
    let resize = resizes.after(this.#resizeSerial)
    while (resize !== undefined) {
      this.#feedUpTo(screen, resize.at)
      this.#resizeSerial = resize.serial
      screen.resize(resize.cols, resize.rows)
      resize = resizes.after(this.#resizeSerial)
    }
    this.#feedUpTo(screen, log.end)
    return screen
  }

  /** In one piece: of bulk output, the feed parses only what can still be seen. */
  #feedUpTo(screen: RemoteScreen, end: number): void {
    const { log } = this.#session
    const start = this.#fed
    const bytes = new Uint8Array(Math.max(0, end - start))
    while (this.#fed < end) {
      const slice = log.read(this.#fed, end - this.#fed)
      if (slice === undefined) break
      bytes.set(slice.bytes, this.#fed - start)
      this.#fed = slice.end
    }
    const fed = this.#fed - start
    if (fed === 0) return
    this.#inFlight += fed
    void screen.feed(bytes.subarray(0, fed)).then(() => {
      this.#inFlight -= fed
    })
  }
}
