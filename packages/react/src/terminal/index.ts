export {
  type TerminalOptions,
  type TerminalState,
  type TicketWish,
  TerminalController,
} from './controller.ts'
export { type FilePlace } from './file-links.ts'
export { DARK, LIGHT, type Palette } from './palette.ts'
export { type RiskyPaste } from './paste.ts'
export { printable } from './printable.ts'
export { type Look, type Size, type Surface } from './surface.ts'
