export * from './api.ts'
export * from './event.ts'
