module github.com/bide-mq/bide

go 1.26
