"""What runs in the pod. Python 3.8 or newer and its standard library are all it needs, so that it fits any image.

The modules are arguments of `python3 -c` (see `embedded_program`): the pod needs no ConfigMap, and its manifest shows
what ran. They import nothing of Hermetic but one another.

In:   the environment variable HERMETIC_PROBE, one JSON object
      {"run": TEXT, "limit": SECONDS, "controls": [TARGET...], "targets": [TARGET...], "names": [[WHAT, NAME, PORT]...],
       "resolvers": [ADDRESS...], "canary": DOMAIN, "knownName": NAME, "clusterName": NAME, "imds": BOOL};
      a TARGET is [WHAT, KIND, ADDRESS, PORT], KIND one of `tcp tls http proxy proxy=NAME forward
      socks udp`; WHAT is for the reader of answers;
      no control means the API server's Service
Out:  one line of JSON on stdout and in /dev/termination-log, of which the kubelet copies 4096 bytes into the pod's
      status: reading it takes no right to read logs. A longer line is written there as `z` and the base64 of its zlib
      form. Answers stand in the order of the questions.

One answer is a letter and what belongs to it:
      o            a TCP connection was made
      s            ... and a TLS handshake record came back
      l            ... and a TLS alert came back
      h200         ... and HTTP was answered with this status: asked were versions of the host's own channel
      p200         ... and a proxy answered with this status
      a            a UDP datagram came back
      d            a DNS message came back that no server outside needs to have written
      t            nothing came back within the limit
      e111         connecting or sending ended with this errno, and no ICMP message was its cause (a TCP reset is 111)
      e111:3.3@A   the same, caused by an ICMP message of this type and code from the address A; `=` is the pod itself
      r0:A,B;Z     a DNS answer with this code, these addresses or names, and this zone in its SOA record
      g            what came back from a DNS server answers another question, or none
      xName        this question broke the probe: a Python exception
`/12` behind an answer: it came after 12 ms. ICMP is only ever read, never sent: nothing in Azure's outbound paths
carries it, so its silence would prove nothing.
"""
