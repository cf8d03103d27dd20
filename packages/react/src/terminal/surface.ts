import { createStore, type Store } from '@sandwire/client'
import { guardErase, TerminalFeed } from '@sandwire/screen'
import { FitAddon } from '@xterm/addon-fit'
import { SearchAddon } from '@xterm/addon-search'
import { Unicode11Addon } from '@xterm/addon-unicode11'
import { Terminal } from '@xterm/xterm'
import { type Appearance, MIN_CONTRAST, XtermSettings } from './appearance.ts'
import { clipboardText } from './clipboard.ts'
import { parseWorkingDirectory } from './file-links.ts'
import { type Arrow, arrowText, releaseKeysOnBlur } from './keys.ts'
import { type LinkEvents, Links } from './links.ts'
import type { Canvas } from './ordered-screen.ts'
import { loadWebgl, ReverseVideo } from './rendering.ts'
import { scrollByTouch } from './touch-scroll.ts'

/** Size in cells. */
export interface Size {
  readonly cols: number
  readonly rows: number
}

const FLASH_MS = 180
/** How long output is gathered during a flood. */
const FLOOD_WAIT_MS = 30
/** Enough output to draw without waiting. */
const FLOOD_ENOUGH_BYTES = 512 * 1024
/** Smallest readable font; what does not fit has to be scrolled. */
const MIN_FONT_SIZE = 6

/** Result of a search. */
export interface Matches {
  /** Which match is selected, counted from 1; undefined when there are too many. */
  readonly at: number | undefined
  readonly count: number
  /** False: there are more. */
  readonly isCounted: boolean
}

const NO_MATCHES: Matches = { at: undefined, count: 0, isCounted: true }
/** Limit for counting matches. */
const MAX_MATCHES = 1_000
/** A border, since no single background color suits all themes. */
const MATCH = '#b58900'
const MARKS = {
  matchBorder: MATCH,
  matchOverviewRuler: MATCH,
  activeMatchBorder: MATCH,
  activeMatchColorOverviewRuler: MATCH,
}

export interface SurfaceEvents extends LinkEvents {
  readonly appearance: Partial<Appearance>
  /** Size until the element is known. */
  readonly size: Size
  readonly allowsClipboardWrite: () => boolean
  readonly onText: (text: string) => void
  readonly onInput: (bytes: Uint8Array) => void
  readonly onPaste: (text: string) => void
  readonly onSelect: () => void
  readonly onTitle: (title: string) => void
  readonly onBell: () => void
  /** The shell reported its working directory. */
  readonly onFolder: (folder: string) => void
  /** The element or the cell size changed. */
  readonly onFit: () => void
}

/** xterm.js without any feature by which output could act on its own: it draws, and reports input. */
export class Surface implements Canvas {
  readonly #terminal: Terminal
  readonly #feed: TerminalFeed
  readonly #links: Links
  readonly #reverse: ReverseVideo
  readonly #fit = new FitAddon()
  readonly #search = new SearchAddon({ highlightLimit: MAX_MATCHES })
  readonly #matches = createStore(NO_MATCHES)
  readonly #observer: ResizeObserver
  #element: HTMLElement | undefined
  /** As configured; the drawn font may be smaller. */
  readonly #settings: XtermSettings
  /** What the font was last reduced for. */
  #shownWhole = ''

  constructor(events: SurfaceEvents) {
    this.#settings = new XtermSettings(events.appearance)
    const terminal = new Terminal({
      ...this.#settings.options,
      ...events.size,
      allowProposedApi: true,
      // The palette suits one background; on others, such as a colored status line, the contrast is corrected.
      minimumContrastRatio: MIN_CONTRAST,
      macOptionIsMeta: true,
      // Reports of title, size or position would type a program's own text into the shell.
      windowOptions: {},
    })
    this.#terminal = terminal
    // A screen reader needs all lines.
    this.#feed = new TerminalFeed(
      terminal,
      () => (terminal.options.screenReaderMode === true ? undefined : terminal.options.scrollback),
      { later: (run) => setTimeout(run, FLOOD_WAIT_MS), enoughBytes: FLOOD_ENOUGH_BYTES },
    )
    terminal.loadAddon(this.#fit)
    terminal.loadAddon(this.#search)
    this.#search.onDidChangeResults(({ resultIndex, resultCount }) => {
      const at = resultIndex < 0 ? undefined : resultIndex + 1
      this.#matches.set({ at, count: resultCount, isCounted: resultCount < MAX_MATCHES })
    })
    terminal.loadAddon(new Unicode11Addon())
    terminal.unicode.activeVersion = '11'
    guardErase(terminal)
    this.#links = new Links(terminal, events)
    this.#reverse = new ReverseVideo(terminal)
    terminal.parser.registerOscHandler(52, (data) => {
      const text = events.allowsClipboardWrite() ? clipboardText(data) : undefined
      if (text !== undefined) void navigator.clipboard.writeText(text).catch(() => undefined)
      return true
    })
    terminal.parser.registerOscHandler(7, (data) => {
      const folder = parseWorkingDirectory(data)
      if (folder !== undefined) events.onFolder(folder)
      return true
    })
    terminal.onData(events.onText)
    terminal.onBinary((text) => events.onInput(Uint8Array.from(text, (character) => character.charCodeAt(0))))
    terminal.onTitleChange(events.onTitle)
    terminal.onBell(events.onBell)
    terminal.onSelectionChange(events.onSelect)
    this.#onFit = events.onFit
    this.#observer = new ResizeObserver(events.onFit)
    this.#onPaste = (event) => {
      event.preventDefault()
      event.stopPropagation()
      events.onPaste(event.clipboardData?.getData('text/plain') ?? '')
    }
  }

  readonly #onPaste: (event: ClipboardEvent) => void
  readonly #onFit: () => void

  mount(element: HTMLElement): void {
    this.#element?.removeEventListener('paste', this.#onPaste, true)
    this.#element = element
    this.#observer.disconnect()
    // Before xterm.js handles it, so that pastes can be confirmed.
    element.addEventListener('paste', this.#onPaste, true)
    if (this.#terminal.element === undefined) {
      this.#terminal.open(element)
      releaseKeysOnBlur(this.#terminal)
      scrollByTouch(this.#terminal)
      this.#links.watch()
      this.#reverse.begin()
      loadWebgl(this.#terminal)
    } else {
      element.append(this.#terminal.element)
    }
    this.#observer.observe(element)
  }

  write(bytes: Uint8Array | string, done: () => void): void {
    this.#feed.write(typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes, done)
  }

  resize(cols: number, rows: number): void {
    if (cols !== this.cols || rows !== this.rows) this.#terminal.resize(cols, rows)
  }

  reset(): void {
    this.#terminal.reset()
  }

  get cols(): number {
    return this.#terminal.cols
  }

  get rows(): number {
    return this.#terminal.rows
  }

  /** True when the element is visible. */
  get isVisible(): boolean {
    const { clientWidth, clientHeight } = this.#element ?? { clientWidth: 0, clientHeight: 0 }
    return clientWidth > 0 && clientHeight > 0
  }

  /** Size of a character in pixels; undefined before the terminal is drawn. */
  get cellSize(): { readonly width: number; readonly height: number } | undefined {
    const screen = this.#terminal.element?.querySelector('.xterm-screen')?.getBoundingClientRect()
    if (screen === undefined || screen.width === 0 || screen.height === 0) return undefined
    return { width: screen.width / this.cols, height: screen.height / this.rows }
  }

  get isFocused(): boolean {
    return this.#terminal.element?.contains(document.activeElement) === true
  }

  /** The size that fits the element; the current one when that is unknown. */
  get proposedSize(): Size {
    // For a hidden element, the addon would parse the CSS size, such as 100%.
    const { cols, rows } = (this.isVisible ? this.#fit.proposeDimensions() : undefined) ?? {}
    const isKnown = Number.isInteger(cols) && Number.isInteger(rows)
    return isKnown
      ? { cols: cols ?? this.cols, rows: rows ?? this.rows }
      : { cols: this.cols, rows: this.rows }
  }

  /** Shows another client's size completely, with a smaller font if it does not fit. */
  showWhole(cols: number, rows: number): void {
    const { clientWidth, clientHeight } = this.#element ?? { clientWidth: 0, clientHeight: 0 }
    const shown = [clientWidth, clientHeight, cols, rows].join()
    if (shown === this.#shownWhole || clientWidth === 0) return
    this.#shownWhole = shown
    const { fontSize } = this.#settings.appearance
    this.#setFontSize(fontSize)
    const fitting = this.proposedSize
    const factor = Math.min(1, fitting.cols / cols, fitting.rows / rows)
    // Cells are whole device pixels, so half the font size may need more than half the space.
    for (let px = Math.floor(fontSize * factor); ; px -= 1) {
      this.#setFontSize(Math.max(MIN_FONT_SIZE, px))
      const now = this.proposedSize
      if (px <= MIN_FONT_SIZE || (now.cols >= cols && now.rows >= rows)) return
    }
  }

  /** Restores the configured font size. */
  endShowWhole(): void {
    this.#shownWhole = ''
    this.#setFontSize(this.#settings.appearance.fontSize)
  }

  /** True in bracketed paste mode. */
  get isPasteBracketed(): boolean {
    return this.#terminal.modes.bracketedPasteMode
  }

  /** The sequence of an arrow key in the program's cursor key mode. */
  arrowText(arrow: Arrow): string {
    return arrowText(arrow, this.#terminal.modes.applicationCursorKeysMode)
  }

  get selection(): string {
    return this.#terminal.getSelection()
  }

  setReadOnly(isReadOnly: boolean): void {
    this.#settings.isReadOnly = isReadOnly
    // Only these two, as the font may be reduced.
    const { disableStdin, cursorBlink } = this.#settings.options
    Object.assign(this.#terminal.options, { disableStdin, cursorBlink })
  }

  /** Changes the given options. */
  setAppearance(appearance: Partial<Appearance>): void {
    this.#settings.change(appearance)
    Object.assign(this.#terminal.options, this.#settings.options)
    this.#reverse.redraw()
    this.#shownWhole = ''
    // Another font changes the number of cells.
    this.#onFit()
  }

  /** Intercepts keys; those for which it returns true do not reach the terminal. */
  onKey(isTaken: (event: KeyboardEvent) => boolean): void {
    this.#terminal.attachCustomKeyEventHandler((event) => !isTaken(event))
  }

  /** Visual bell. */
  flash(): void {
    this.#element?.animate([{ opacity: 0.4 }, { opacity: 1 }], { duration: FLASH_MS })
  }

  focus(): void {
    this.#terminal.focus()
  }

  clear(): void {
    this.#terminal.clear()
  }

  selectAll(): void {
    this.#terminal.selectAll()
  }

  /** Selects the next match; false when there is none. */
  find(text: string, backwards = false): boolean {
    const options = { decorations: MARKS }
    return backwards ? this.#search.findPrevious(text, options) : this.#search.findNext(text, options)
  }

  /** The result of `find`. */
  get matches(): Store<Matches> {
    return this.#matches
  }

  endFind(): void {
    this.#search.clearDecorations()
    this.#terminal.clearSelection()
    this.#matches.set(NO_MATCHES)
  }

  /** Scrollback and screen as text. */
  readText(): string {
    const { active } = this.#terminal.buffer
    return Array.from(
      { length: active.length },
      (_, y) => active.getLine(y)?.translateToString(true) ?? '',
    ).join('\n')
  }

  dispose(): void {
    this.#observer.disconnect()
    this.#element?.removeEventListener('paste', this.#onPaste, true)
    this.#terminal.dispose()
  }

  #setFontSize(px: number): void {
    if (this.#terminal.options.fontSize !== px) this.#terminal.options.fontSize = px
  }
}
