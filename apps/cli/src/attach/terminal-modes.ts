const ESC = 0x1b
const BEL = 0x07
/** No sequence of interest has longer parameters. */
const MAX_SEQUENCE_CHARS = 64

type State = 'ground' | 'escape' | 'intermediate' | 'sequence' | 'string' | 'stringEscape'

/** Private modes to turn off after a program: mouse, focus, paste, keys, synchronized updates. */
const TURNED_OFF = [1000, 1001, 1002, 1003, 1005, 1006, 1015, 1016, 1004, 2004, 2026, 1, 66]
/** Private modes that are on by default: wrapping, and the cursor. */
const TURNED_ON = [7, 25]
/** ANSI modes that are off by default: insert, and newline. */
const STANDARD_TURNED_OFF = [4, 20]
/** Origin mode: rows count from the upper margin. */
const ORIGIN = 6
/** Turning it off moves the cursor to the first row; later messages belong on the last. */
const LEAVE_ORIGIN = '\x1b[?6l\x1b[999H'
/** The alternate screen of full-screen programs. */
const ALTERNATE = [1049, 1047, 47]

/** Tracks the modes that a remote program set on the terminal, to undo exactly those. */
export class TerminalModes {
  readonly #set = new Set<number>()
  readonly #unset = new Set<number>()
  readonly #standard = new Set<number>()
  #state: State = 'ground'
  #sequence = ''
  #hasKeypad = false
  #hasMargins = false
  #hasCursorStyle = false
  #hasModifiedKeys = false
  /** Pushed levels of the kitty keyboard protocol. */
  #keyboardLevels = 0

  get isAlternateScreen(): boolean {
    return ALTERNATE.some((mode) => this.#set.has(mode))
  }

  /** False in the middle of an escape sequence, where nothing may be inserted. */
  get isBetweenSequences(): boolean {
    return this.#state === 'ground'
  }

  /** Scans output for mode changes. */
  scan(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at++) {
      if (this.#state === 'ground') {
        at = bytes.indexOf(ESC, at)
        if (at < 0) return
        this.#state = 'escape'
      } else this.#step(bytes[at] ?? 0)
    }
  }

  /** Returns the bytes that undo all tracked modes, and forgets them. */
  undo(): string {
    const turnedOff = TURNED_OFF.filter((mode) => this.#set.has(mode)).map((mode) => `\x1b[?${mode}l`)
    const standard = STANDARD_TURNED_OFF.filter((mode) => this.#standard.has(mode))
    const turnedOn = TURNED_ON.filter((mode) => this.#unset.has(mode)).map((mode) => `\x1b[?${mode}h`)
    const alternate = ALTERNATE.filter((mode) => this.#set.has(mode)).map((mode) => `\x1b[?${mode}l`)
    const parts = [
      // Output may have ended in the middle of a sequence or string.
      this.isBetweenSequences ? '' : '\x1b\\',
      ...turnedOff,
      ...standard.map((mode) => `\x1b[${mode}l`),
      this.#hasKeypad ? '\x1b>' : '',
      this.#keyboardLevels > 0 ? `\x1b[<${this.#keyboardLevels}u` : '',
      this.#hasModifiedKeys ? '\x1b[>4m' : '',
      this.#set.has(ORIGIN) ? LEAVE_ORIGIN : '',
      this.#hasMargins ? '\x1b7\x1b[r\x1b8' : '',
      ...alternate,
      this.#hasCursorStyle ? '\x1b[0 q' : '',
      ...turnedOn,
      '\x1b[0m',
    ]
    this.#reset()
    return parts.join('')
  }

  #step(byte: number): void {
    switch (this.#state) {
      case 'ground':
        return
      case 'escape':
        this.#escape(byte)
        return
      case 'intermediate':
        // For example the selection of a character set.
        if (byte >= 0x30) this.#state = 'ground'
        return
      case 'sequence':
        this.#inSequence(byte)
        return
      case 'string':
        if (byte === BEL) this.#state = 'ground'
        else if (byte === ESC) this.#state = 'stringEscape'
        return
      case 'stringEscape':
        // The terminator, or a new sequence that aborts the string.
        if (byte === 0x5c) this.#state = 'ground'
        else this.#escape(byte)
        return
    }
  }

  #escape(byte: number): void {
    const character = String.fromCharCode(byte)
    this.#sequence = ''
    if (character === '[') this.#state = 'sequence'
    else if (']PX^_'.includes(character)) this.#state = 'string'
    else if (byte < 0x20) this.#state = 'escape'
    else if (byte < 0x30) this.#state = 'intermediate'
    else {
      this.#state = 'ground'
      if (character === '=') this.#hasKeypad = true
      if (character === '>') this.#hasKeypad = false
      if (character === 'c') this.#reset()
    }
  }

  #inSequence(byte: number): void {
    if (byte === ESC) this.#state = 'escape'
    else if (byte >= 0x40 && byte <= 0x7e) {
      this.#state = 'ground'
      this.#apply(this.#sequence, String.fromCharCode(byte))
    } else if (byte === 0x18 || byte === 0x1a) this.#state = 'ground'
    else if (this.#sequence.length < MAX_SEQUENCE_CHARS) this.#sequence += String.fromCharCode(byte)
  }

  #apply(parameters: string, final: string): void {
    if (final === 'h' || final === 'l') this.#changeAll(parameters, final === 'h')
    else if (final === 'r' && /^[0-9;]*$/.test(parameters)) this.#hasMargins = parameters !== ''
    else if (final === 'q' && parameters.endsWith(' ')) this.#hasCursorStyle = !/^0? $/.test(parameters)
    else if (final === 'm' && parameters.startsWith('>4'))
      this.#hasModifiedKeys = /^>4;[1-9]/.test(parameters)
    else if (final === 'u' && parameters.startsWith('>')) this.#keyboardLevels += 1
    else if (final === 'u' && parameters.startsWith('<')) {
      this.#keyboardLevels = Math.max(0, this.#keyboardLevels - Math.max(1, Number(parameters.slice(1)) || 1))
    } else if (final === 'p' && parameters === '!') this.#softReset()
  }

  #changeAll(parameters: string, isSet: boolean): void {
    const isPrivate = parameters.startsWith('?')
    for (const text of parameters.slice(isPrivate ? 1 : 0).split(';')) {
      if (isPrivate) this.#change(Number(text), isSet)
      else this.#changeStandard(Number(text), isSet)
    }
  }

  #change(mode: number, isSet: boolean): void {
    this.#set.delete(mode)
    this.#unset.delete(mode)
    if (isSet && (TURNED_OFF.includes(mode) || ALTERNATE.includes(mode) || mode === ORIGIN))
      this.#set.add(mode)
    if (!isSet && TURNED_ON.includes(mode)) this.#unset.add(mode)
  }

  #changeStandard(mode: number, isSet: boolean): void {
    if (isSet && STANDARD_TURNED_OFF.includes(mode)) this.#standard.add(mode)
    else if (!isSet) this.#standard.delete(mode)
  }

  #softReset(): void {
    this.#hasKeypad = false
    this.#hasMargins = false
    this.#unset.delete(25)
    this.#set.delete(1)
    this.#set.delete(ORIGIN)
    this.#standard.delete(4)
  }

  #reset(): void {
    this.#set.clear()
    this.#unset.clear()
    this.#standard.clear()
    this.#state = 'ground'
    this.#hasKeypad = false
    this.#hasMargins = false
    this.#hasCursorStyle = false
    this.#hasModifiedKeys = false
    this.#keyboardLevels = 0
  }
}
