export { shellQuote } from './shell-quote.ts'
