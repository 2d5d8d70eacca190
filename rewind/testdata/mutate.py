import sys, threading, time

data = bytearray(32 << 20)
for i in range(0, len(data), 4096):
    data[i] = 1
count, kept, table = 0, [], {}


def sleeper():
    while True:
        time.sleep(1000)


threading.Thread(target=sleeper, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    words = line.split()
    if words[0] == "mutate":
        n = int(words[1])
        count += 1
        table[count] = str(count) * 10
        for i in range(0, n << 20, 4096):
            data[i] = (data[i] + 1) & 255
        kept.append([bytes(1000) for _ in range(3000)])
        if len(words) > 2:
            threading.Thread(target=sleeper, daemon=True).start()
            kept.append(open("/dev/zero"))
            kept.append(bytearray(3 << 20))
    print(count, len(kept), len(table), sum(data[0 : 8 << 20 : 4096]), flush=True)
