export * from './api.ts'
export * from './event.ts'
export * from './plain-text.ts'
