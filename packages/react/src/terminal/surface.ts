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

/** Of a terminal, in cells. */
export interface Size {
  readonly cols: number
  readonly rows: number
}

const FLASH_MS = 180
/** In a flood, output is let gather for so long. */
const FLOOD_WAIT_MS = 30
/** So much does not wait for more. */
const FLOOD_ENOUGH_BYTES = 512 * 1024
/** Smaller letters nobody can read: what does not fit with them has to be scrolled. */
const MIN_FONT_SIZE = 6

/** What a search has found. */
export interface Matches {
  /** Which of them is shown, counted from 1; undefined where there are too many to tell. */
  readonly at: number | undefined
  readonly count: number
  /** False: there are more than that. */
  readonly isCounted: boolean
}

const NO_MATCHES: Matches = { at: undefined, count: 0, isCounted: true }
/** More places than anybody steps through; counting them all would take long. */
const MAX_MATCHES = 1_000
/** A border, since a ground of one color suits no two themes. */
const MATCH = '#b58900'
const MARKS = {
  matchBorder: MATCH,
  matchOverviewRuler: MATCH,
  activeMatchBorder: MATCH,
  activeMatchColorOverviewRuler: MATCH,
}

export interface SurfaceEvents extends LinkEvents {
  readonly appearance: Partial<Appearance>
  /** Its size until it has a place to draw in. */
  readonly size: Size
  readonly allowsClipboardWrite: () => boolean
  readonly onText: (text: string) => void
  readonly onInput: (bytes: Uint8Array) => void
  readonly onPaste: (text: string) => void
  readonly onSelect: () => void
  readonly onTitle: (title: string) => void
  readonly onBell: () => void
  /** The shell says which folder it is in. */
  readonly onFolder: (folder: string) => void
  /** The element, or what fits into it, has another size. */
  readonly onFit: () => void
}

/** xterm.js with everything switched off by which output could act on its own: it draws, and says what was typed. */
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
  /** As it was asked for; the letters that are drawn may be smaller. */
  readonly #settings: XtermSettings
  /** What the letters were last made smaller for. */
  #shownWhole = ''

  constructor(events: SurfaceEvents) {
    this.#settings = new XtermSettings(events.appearance)
    const terminal = new Terminal({
      ...this.#settings.options,
      ...events.size,
      allowProposedApi: true,
      // A palette suits one ground; on the others, such as the green of a status line, text is made light or dark enough.
      minimumContrastRatio: MIN_CONTRAST,
      macOptionIsMeta: true,
      // Reports of title, size and position would type a program's own text into the shell.
      windowOptions: {},
    })
    this.#terminal = terminal
    // A screen reader reads lines out as they come.
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
    // Before xterm.js sees it, so that pastes can be asked about.
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

  /** Whether there is a place to draw in; what lies behind something else has none. */
  get isVisible(): boolean {
    const { clientWidth, clientHeight } = this.#element ?? { clientWidth: 0, clientHeight: 0 }
    return clientWidth > 0 && clientHeight > 0
  }

  /** The size that fits into the element; the present one where that is not known. */
  get proposedSize(): Size {
    // Of an element without a place the addon reads the size as it is written in the style: 100 of something.
    const { cols, rows } = (this.isVisible ? this.#fit.proposeDimensions() : undefined) ?? {}
    const isKnown = Number.isInteger(cols) && Number.isInteger(rows)
    return isKnown
      ? { cols: cols ?? this.cols, rows: rows ?? this.rows }
      : { cols: this.cols, rows: this.rows }
  }

  /** Shows a size that somebody else chose as a whole: with smaller letters where it does not fit, never with larger ones. */
  showWhole(cols: number, rows: number): void {
    const { clientWidth, clientHeight } = this.#element ?? { clientWidth: 0, clientHeight: 0 }
    const shown = [clientWidth, clientHeight, cols, rows].join()
    if (shown === this.#shownWhole || clientWidth === 0) return
    this.#shownWhole = shown
    const { fontSize } = this.#settings.appearance
    this.#setFontSize(fontSize)
    const fitting = this.proposedSize
    const factor = Math.min(1, fitting.cols / cols, fitting.rows / rows)
    // Cells are whole pixels of the screen, so that letters of half the size may take more than half the room.
    for (let px = Math.floor(fontSize * factor); ; px -= 1) {
      this.#setFontSize(Math.max(MIN_FONT_SIZE, px))
      const now = this.proposedSize
      if (px <= MIN_FONT_SIZE || (now.cols >= cols && now.rows >= rows)) return
    }
  }

  /** Has letters of their own size again. */
  endShowWhole(): void {
    this.#shownWhole = ''
    this.#setFontSize(this.#settings.appearance.fontSize)
  }

  /** Whether the program tells pastes from typing. */
  get isPasteBracketed(): boolean {
    return this.#terminal.modes.bracketedPasteMode
  }

  /** What an arrow key sends to the program that is there. */
  arrowText(arrow: Arrow): string {
    return arrowText(arrow, this.#terminal.modes.applicationCursorKeysMode)
  }

  get selection(): string {
    return this.#terminal.getSelection()
  }

  setReadOnly(isReadOnly: boolean): void {
    this.#settings.isReadOnly = isReadOnly
    // These two alone: the letters may be smaller than their appearance says.
    const { disableStdin, cursorBlink } = this.#settings.options
    Object.assign(this.#terminal.options, { disableStdin, cursorBlink })
  }

  /** Changes what is given; the rest of the appearance stays. */
  setAppearance(appearance: Partial<Appearance>): void {
    this.#settings.change(appearance)
    Object.assign(this.#terminal.options, this.#settings.options)
    this.#reverse.redraw()
    this.#shownWhole = ''
    // Another font fills the same element with another number of cells.
    this.#onFit()
  }

  /** Decides first about keys; true: the terminal does not see them. */
  onKey(isTaken: (event: KeyboardEvent) => boolean): void {
    this.#terminal.attachCustomKeyEventHandler((event) => !isTaken(event))
  }

  /** Says without a sound that something wants to be looked at. */
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

  /** Goes to the next place of a text; says whether there is one. */
  find(text: string, backwards = false): boolean {
    const options = { decorations: MARKS }
    return backwards ? this.#search.findPrevious(text, options) : this.#search.findNext(text, options)
  }

  /** What `find` has found. */
  get matches(): Store<Matches> {
    return this.#matches
  }

  endFind(): void {
    this.#search.clearDecorations()
    this.#terminal.clearSelection()
    this.#matches.set(NO_MATCHES)
  }

  /** Everything above and on the screen, as text. */
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
