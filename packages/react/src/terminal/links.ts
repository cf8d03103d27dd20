import { WebLinksAddon } from '@xterm/addon-web-links'
import type { IBufferRange, Terminal } from '@xterm/xterm'
import { fileLinks, type FileLocation, readLine } from './file-links.ts'
import { printable } from './printable.ts'

/** A link that says one address, or none that can be seen, and leads to another. */
export interface SuspiciousLink {
  /** What it says. */
  readonly text: string
  /** Where it leads. */
  readonly address: string
}

/** Addresses as people write them, with or without how they are fetched; dots of other scripts count. */
const ADDRESS =
  /[a-z][a-z\d+.-]*:\/\/\S+|(?:[\p{L}\p{M}\p{N}-]+[.。．｡])+[\p{L}\p{M}\p{N}-]*\p{L}[\p{L}\p{M}\p{N}-]*(?:[:/?#]\S*)?/giu
const SCHEME = /^[a-z][a-z\d+.-]*:\/\//i
const CLOSING = /[.,;:!?)\]}>'"»”’]+$/u

/** What of an address has to be the same; without a path in the text, it says nothing of one. */
function isSameTarget(said: string, target: URL): boolean {
  try {
    const url = new URL(SCHEME.test(said) ? said : `${target.protocol}//${said}`)
    const path = (one: URL): string => `${one.pathname}${one.search}${one.hash}`.replace(/\/$/, '')
    return url.host === target.host && (path(url) === '' || path(url) === path(target))
  } catch {
    // It looks like an address and is none: it leads nowhere near.
    return false
  }
}

/**
 * Whether somebody could take a link for another one: a program chooses its text and its address apart (OSC 8). `isSeen`: its address
 * is shown before it is opened, so a text that is no address promises nothing.
 */
export function isSuspicious(text: string, address: string, isSeen: boolean): boolean {
  const target = new URL(address)
  if (target.username !== '' || target.password !== '') return true
  const said = (text.replaceAll(/\p{Cf}/gu, '').match(ADDRESS) ?? []).map((one) => one.replace(CLOSING, ''))
  return said.length === 0 ? !isSeen : !said.every((one) => isSameTarget(one, target))
}

/** The address of a link that may be opened from a terminal: what a program prints is not to be trusted with more. */
export function webAddress(text: string): string | undefined {
  try {
    const url = new URL(text)
    return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : undefined
  } catch {
    // Not an address at all.
    return undefined
  }
}

/** Colors of their own: what is below can be of any. */
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
/** So near to the end of a terminal that the line would lie on what is pointed at. */
const NEAR_PX = 60

/** A line in the corner of a terminal that says where a link leads while it is pointed at, as browsers do. */
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
  /** Whether anybody opens files at present; else paths are text. */
  readonly opensFiles: () => boolean
  readonly onOpenFile: (place: FileLocation) => void
  readonly confirmLink: (link: SuspiciousLink) => Promise<boolean>
}

/** Asks in the simplest way that a browser has. */
export function confirmInBrowser({ text, address }: SuspiciousLink): Promise<boolean> {
  return Promise.resolve(confirm(`Link text:\n${text}\n\nOpens:\n${address}\n\nOpen this link?`))
}

function open(address: string): void {
  window.open(address, '_blank', 'noopener,noreferrer')
}

/** What stands where a link is, up to the spaces around it: its text may go on in the next row. */
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
 * Links in a terminal: addresses, paths, and what programs mark as links. They open with Ctrl or Cmd and a click, since a click alone is
 * for the terminal, and with a tap. Where they lead is shown first.
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

  /** Learns from the terminal's element, once it has one, whether it is clicked or tapped. */
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
