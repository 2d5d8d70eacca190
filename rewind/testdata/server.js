const http = require('http')
let counter = 0
const list = [], map = new Map()
setInterval(() => {}, 1000)
const server = http.createServer((q, r) => {
  if (q.url === '/state') return r.end(JSON.stringify({ counter, list: list.length, map: map.size }))
  if (q.url === '/hash') {
    return require('crypto').pbkdf2('a', 'b', 1000, 64, 'sha512', (e, k) => r.end(k.toString('hex').slice(0, 8)))
  }
  let body = ''
  q.on('data', d => (body += d))
  q.on('end', () => {
    counter++
    list.push(body)
    for (let i = 0; i < 2000; i++) map.set(counter + ':' + i, { x: i, s: 'v' + i })
    r.end('ok ' + counter)
  })
})
server.keepAliveTimeout = 60000
server.listen(0, '127.0.0.1', () => console.log('ready\n127.0.0.1:' + server.address().port))
