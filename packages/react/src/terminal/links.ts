import { WebLinksAddon } from '@xterm/addon-web-links'
import type { IBufferRange, Terminal } from '@xterm/xterm'
import { fileLinks, type FileLocation, readLine } from './file-links.ts'
import { printable } from './printable.ts'

/** A link whose text names another address than its target, or hides the target. */
export interface SuspiciousLink {
  /** The link text. */
  readonly text: string
  /** The target. */
  readonly address: string
}

/** Addresses as people write them, with or without a scheme, also with dots of other scripts. */
const ADDRESS =
  /[a-z][a-z\d+.-]*:\/\/\S+|(?:[\p{L}\p{M}\p{N}-]+[.。．｡])+[\p{L}\p{M}\p{N}-]*\p{L}[\p{L}\p{M}\p{N}-]*(?:[:/?#]\S*)?/giu
const SCHEME = /^[a-z][a-z\d+.-]*:\/\//i
const CLOSING = /[.,;:!?)\]}>'"»”’]+$/u

/** True when an address in the text matches the target; without a path in the text, any path does. */
function isSameTarget(said: string, target: URL): boolean {
  try {
    const url = new URL(SCHEME.test(said) ? said : `${target.protocol}//${said}`)
    const path = (one: URL): string => `${one.pathname}${one.search}${one.hash}`.replace(/\/$/, '')
    return url.host === target.host && (path(url) === '' || path(url) === path(target))
  } catch {
    // It looks like an address but is not valid.
    return false
  }
}

/**
 * True when a link could be mistaken for another: programs choose text and target independently (OSC 8). With
 * `isSeen`, the target is shown before opening, so a text without an address is fine.
 */
export function isSuspicious(text: string, address: string, isSeen: boolean): boolean {
  const target = new URL(address)
  if (target.username !== '' || target.password !== '') return true
  const said = (text.replaceAll(/\p{Cf}/gu, '').match(ADDRESS) ?? []).map((one) => one.replace(CLOSING, ''))
  return said.length === 0 ? !isSeen : !said.every((one) => isSameTarget(one, target))
}

/** Normalizes a URL that may be opened from a terminal: http and https only. */
export function webAddress(text: string): string | undefined {
  try {
    const url = new URL(text)
    return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : undefined
  } catch {
    // Not a URL.
    return undefined
  }
}

/** Fixed colors, since the terminal below may have any. */
const LOOK = {
  position: 'absolute',
  left: '0',
  zIndex: '10',
  maxWidth: '100%',
  boxSizing: 'border-box',
  padding: '3px 8px',
  background: '#2b2f38',
  color: '#f2f4f8',
  pointerEvents: 'none',
  font: '12px/1.45 system-ui, sans-serif',
  overflow: 'hidden',
  whiteSpace: 'nowrap',
  textOverflow: 'ellipsis',
}
/** Distance from the bottom at which the line would cover the pointer. */
const NEAR_PX = 60

/** Shows a link's target in the corner of the terminal while the pointer is on it. */
class LinkLine {
  readonly #element: HTMLElement

  constructor() {
    this.#element = document.createElement('div')
    this.#element.className = 'sandwire-link-line'
    Object.assign(this.#element.style, LOOK)
  }

  show(terminal: HTMLElement, text: string, pointerY: number): void {
    const isNearEnd = terminal.getBoundingClientRect().bottom - pointerY < NEAR_PX
    Object.assign(this.#element.style, isNearEnd ? { top: '0', bottom: '' } : { top: '', bottom: '0' })
    this.#element.textContent = text
    terminal.append(this.#element)
  }

  hide(): void {
    this.#element.remove()
  }
}

const MAX_TEXT_CHARS = 500

export interface LinkEvents {
  /** True when the page opens files; otherwise paths are plain text. */
  readonly opensFiles: () => boolean
  readonly onOpenFile: (place: FileLocation) => void
  readonly confirmLink: (link: SuspiciousLink) => Promise<boolean>
}

/** The browser's own confirmation dialog. */
export function confirmInBrowser({ text, address }: SuspiciousLink): Promise<boolean> {
  return Promise.resolve(confirm(`Link text:\n${text}\n\nOpens:\n${address}\n\nOpen this link?`))
}

function open(address: string): void {
  window.open(address, '_blank', 'noopener,noreferrer')
}

/** The text around a link up to the next spaces, since it may wrap to the next row. */
function textAt({ buffer }: Terminal, { start, end }: IBufferRange): string {
  const { text, places } = readLine(buffer.active, start.y - 1)
  const isWithin = (at: number): boolean => {
    const place = places[at]
    return place !== undefined && place.y === start.y && place.from >= start.x && place.to <= end.x
  }
  const within = [...places.keys()].filter(isWithin)
  const [first = 0, last = 0] = [within[0], within.at(-1)]
  const before = /\S*$/.exec(text.slice(0, first))?.[0] ?? ''
  const after = /^\S*/.exec(text.slice(last + 1))?.[0] ?? ''
  return before + text.slice(first, last + 1) + after
}

/**
 * Links in a terminal: URLs, paths and OSC 8 hyperlinks. They open with Ctrl or Cmd and a click, since a plain click
 * belongs to the terminal, or with a tap. The target is shown first.
 */
export class Links {
  readonly #terminal: Terminal
  readonly #events: LinkEvents
  readonly #line = new LinkLine()
  #isTouch = false

  constructor(terminal: Terminal, events: LinkEvents) {
    this.#terminal = terminal
    this.#events = events
    const leave = (): void => this.#line.hide()
    const hover = (event: MouseEvent, text: string): void => this.#show(event, webAddress(text) ?? text)
    terminal.options.linkHandler = {
      hover,
      leave,
      allowNonHttpProtocols: false,
      activate: (event, text, range) => void this.#openMarked(event, text, range),
    }
    const activate = (event: MouseEvent, text: string): void => this.#openWritten(event, text)
    terminal.loadAddon(new WebLinksAddon(activate, { hover, leave }))
    const openFile = (event: MouseEvent, place: FileLocation): void => {
      if (this.#isMeant(event)) events.onOpenFile(place)
    }
    const paths = {
      opensFiles: events.opensFiles,
      activate: openFile,
      hover: (event: MouseEvent, text: string) => this.#show(event, text),
      leave,
    }
    terminal.registerLinkProvider(fileLinks(terminal, paths))
  }

  /** Detects whether the terminal is clicked or tapped; call once it has an element. */
  watch(): void {
    const learn = ({ pointerType }: PointerEvent): void => {
      this.#isTouch = pointerType === 'touch'
    }
    this.#terminal.element?.addEventListener('pointerdown', learn, { capture: true })
  }

  #isMeant(event: MouseEvent): boolean {
    return event.ctrlKey || event.metaKey || this.#isTouch
  }

  #show(event: MouseEvent, target: string): void {
    const { element } = this.#terminal
    if (element === undefined || this.#isTouch) return
    const keys = /Mac|iP(ad|hone)/.test(navigator.platform) ? '⌘ click' : 'Ctrl+click'
    this.#line.show(element, `${keys} opens ${printable(target, MAX_TEXT_CHARS)}`, event.clientY)
  }

  #openWritten(event: MouseEvent, text: string): void {
    const address = webAddress(text)
    if (address !== undefined && this.#isMeant(event)) open(address)
  }

  async #openMarked(event: MouseEvent, target: string, range: IBufferRange): Promise<void> {
    const address = webAddress(target)
    if (address === undefined || !this.#isMeant(event)) return
    const text = textAt(this.#terminal, range)
    const link = { text: printable(text, MAX_TEXT_CHARS), address: printable(address, address.length) }
    if (isSuspicious(text, address, !this.#isTouch) && !(await this.#events.confirmLink(link))) return
    open(address)
  }
}
