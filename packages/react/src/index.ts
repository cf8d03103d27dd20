export * from './terminal/index.ts'
export { Terminal, type TerminalProps } from './terminal.tsx'
export { useStore } from './use-store.ts'
