/// <reference types="vitest/config" />
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

// dist holds one file that is not built, so that the binary can be built
// without the rest. Files are compressed here; the server never compresses.
function dist(): Plugin {
  return {
    name: 'dist',
    apply: 'build',
    buildStart() {
      for (const name of readdirSync('dist')) if (name !== 'README') rmSync(join('dist', name), { recursive: true })
    },
    closeBundle() {
      for (const entry of readdirSync('dist', { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || !/\.(js|css|html|svg|json)$/.test(entry.name)) continue
        const file = join(entry.parentPath, entry.name)
        writeFileSync(file + '.gz', gzipSync(readFileSync(file), { level: 9 }))
      }
    },
  }
}

// KaTeX provides each font in three formats. All browsers that the console supports read the first.
function oneFormat(): Plugin {
  return {
    name: 'one-format',
    enforce: 'pre',
    transform(code, id) {
      if (!/katex[^/]*\.css/.test(id)) return
      return code.replace(/,url\([^)]*\.(?:woff|ttf)\) format\("[a-z]+"\)/g, '')
    },
  }
}

// `npm run dev` serves the console from its sources, with a server on port
// 8080. The server only accepts pages of its own origin, so the proxy sets that
// origin.
const server = 'http://127.0.0.1:8080'

export default defineConfig({
  plugins: [react(), tailwindcss(), oneFormat(), dist()],
  build: {
    target: 'es2023',
    emptyOutDir: false,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0, // the page's policy allows no data: scripts or styles
  },
  server: {
    proxy: { '/api': { target: server, changeOrigin: true, ws: true, headers: { origin: server } } },
  },
  test: {
    environment: 'happy-dom',
    include: ['src/**/*.test.{ts,tsx}'], // e2e/ has a runner of its own
    restoreMocks: true,
    setupFiles: ['src/patience.ts'],
    testTimeout: 120_000,
  },
})
