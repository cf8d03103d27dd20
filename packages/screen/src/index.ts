export { guardErase } from './erase-guard.ts'
export { type FedTerminal, TerminalFeed } from './terminal-feed.ts'
